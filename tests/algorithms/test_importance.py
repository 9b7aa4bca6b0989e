# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Importance weights, and the three ways to train on responses of older weights."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.importance import correct_staleness, importance_weights
from tests.algorithms.batches import make_batch, noise


def test_far_apart_policies_stay_finite() -> None:
    batch = make_batch()
    old = torch.full_like(noise(batch, 0), 1e30)
    weights = importance_weights(old, -old, batch.mask, batch.cu_seqlens, kind="none")
    assert bool(weights.isfinite().all())


def test_what_is_refused() -> None:
    batch = make_batch()
    x, layout = noise(batch, 0), (batch.mask, batch.cu_seqlens)
    with pytest.raises(ValueError, match="kind='clip'"):
        importance_weights(x, x, *layout, kind="clip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"low=3.0, high=2.0"):
        importance_weights(x, x, *layout, low=3.0)
    with pytest.raises(ValueError, match="correction is 'none'"):
        correct_staleness(x, x, *layout, correction="none")  # type: ignore[arg-type]
