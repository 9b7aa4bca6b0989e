# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Where the tokens of a pack are."""

from __future__ import annotations

import pytest
import torch

from megacurl.megatron.packing import pack

CPU = torch.device("cpu")


def test_indices_by_hand() -> None:
    batch = pack([[1, 2], [6]], [[3, 4, 5], [7]], device=CPU, multiple=4)
    assert batch.tokens.tolist() == [[1, 2, 3, 4, 5, 6, 7, 0]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 3, 4, 0, 1, 0]]
    assert batch.sequences.cu_seqlens_q.tolist() == [0, 5, 7, 8]
    assert batch.targets.tolist() == [3, 4, 5, 7]
    # Token 3 is predicted where token 2 stands, and so on.
    assert batch.predict_index.tolist() == [1, 2, 3, 5]
    assert batch.end_index.tolist() == [4, 6]
    assert batch.cu_seqlens.tolist() == [0, 3, 4]


def test_no_filler_where_none_is_needed() -> None:
    batch = pack([[1, 2]], [[3, 4]], device=CPU, multiple=4)
    assert batch.sequences.cu_seqlens_q.tolist() == [0, 4]


def test_an_empty_pack_is_only_filler() -> None:
    batch = pack([], [], device=CPU, multiple=2)
    assert batch.tokens.shape == (1, 2)
    assert batch.predict_index.numel() == batch.targets.numel() == batch.end_index.numel() == 0
    assert batch.cu_seqlens.tolist() == [0]


def test_a_prompt_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="prompt has no tokens"):
        pack([[]], [[1]], device=CPU)
