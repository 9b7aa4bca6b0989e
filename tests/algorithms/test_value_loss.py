# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The critic's loss: what is refused, and a batch without tokens."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.value_loss import value_loss


def test_bad_clip_and_empty_batch() -> None:
    none = torch.zeros(0)
    with pytest.raises(ValueError, match="value_clip is 0"):
        value_loss(none, none, none, none.bool(), none, value_clip=0.0)
    loss, stats = value_loss(none, none, none, none.bool(), none, value_clip=0.2)
    assert loss.item() == 0 and stats.metrics() == {"clip_frac": 0.0, "mse": 0.0}
