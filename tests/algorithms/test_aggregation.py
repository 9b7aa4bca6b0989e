# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Denominators: what they count, and what is refused without them."""

from __future__ import annotations

from typing import get_args

import pytest
import torch

from megacurl.algorithms.aggregation import (
    Denominators,
    LossAggMode,
    aggregate,
    global_denominators,
    prompt_token_counts,
    token_coefficients,
)
from megacurl.algorithms.packed import valid_lengths
from tests.algorithms.batches import LENGTHS, make_batch

MODES = get_args(LossAggMode)
GROUP = torch.tensor([7, 7, 4, 9, 4, 7, 4])
CORRECT = torch.tensor([True, False, True, True, True, False, False])


def counts_of(seed: int = 0) -> tuple[torch.Tensor, Denominators]:
    batch = make_batch(seed)
    lengths = valid_lengths(batch.mask, batch.cu_seqlens)
    return lengths, global_denominators(lengths, correct=CORRECT, group=GROUP, max_length=50)


def test_denominators_count_only_what_can_be_trained() -> None:
    lengths, found = counts_of()
    n = lengths.tolist()
    assert n[2] == n[3] == 0, "the empty and the all-masked response"
    assert found == Denominators(
        tokens=sum(n),
        sequences=sum(x > 0 for x in n),
        correct_tokens=n[0] + n[4],
        prompts=2,  # question 9 has only the all-masked response
        max_length=50,
    )
    assert prompt_token_counts(lengths, GROUP).tolist() == [
        sum(n[j] for j in range(len(n)) if GROUP[j] == g) for g in GROUP
    ]


def test_a_batch_without_trainable_tokens_is_flagged_and_weighs_nothing() -> None:
    mask, offsets = torch.zeros(3, dtype=torch.bool), torch.tensor([0, 2, 3])
    nothing = global_denominators(valid_lengths(mask, offsets), group=torch.tensor([0, 1]))
    assert nothing.empty and not counts_of()[1].empty
    for mode in MODES:
        coefs = token_coefficients(mask, offsets, mode, nothing)
        assert coefs.tolist() == [0.0, 0.0, 0.0]
        x = torch.full((3,), float("nan"), requires_grad=True)
        loss = aggregate(x, mask, coefs)
        loss.backward()
        assert loss.item() == 0 and x.grad is not None and x.grad.tolist() == [0.0] * 3


def test_missing_counts_are_named() -> None:
    mask, offsets = torch.ones(2, dtype=torch.bool), torch.tensor([0, 2])
    bare = global_denominators(torch.tensor([2]))
    for mode in ("seq-mean-token-sum-norm", "token-sum-norm"):
        with pytest.raises(ValueError, match="response length limit, which is None"):
            token_coefficients(mask, offsets, mode, bare)
    with pytest.raises(ValueError, match="needs the questions of the batch"):
        token_coefficients(mask, offsets, "prompt-mean-token-mean", bare)
    with pytest.raises(ValueError, match="loss_agg_mode is 'mean'"):
        token_coefficients(mask, offsets, "mean", bare)
    assert len(LENGTHS) == GROUP.numel() == CORRECT.numel()
