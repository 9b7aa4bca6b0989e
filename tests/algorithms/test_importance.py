# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Importance weights, and the three ways to train on responses of older weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from megacurl.algorithms.importance import correct_staleness, importance_weights
from megacurl.algorithms.policy_loss import policy_loss
from tests.algorithms.batches import make_batch, noise


@pytest.mark.parametrize("kind", ["tis", "icepop", "none"])
@pytest.mark.parametrize("level", ["token", "sequence", "geometric"])
def test_masked_positions_do_not_matter_and_weights_are_constants(kind: Any, level: Any) -> None:
    batch = make_batch()
    old, behaviour = noise(batch, 1).requires_grad_(), noise(batch, 2)
    options = {"kind": kind, "level": level, "low": 0.5, "high": 2.0}
    clean = importance_weights(old, behaviour, batch.mask, batch.cu_seqlens, **options)
    dirty = importance_weights(
        batch.poisoned(old), batch.poisoned(behaviour), batch.mask, batch.cu_seqlens, **options
    )
    assert torch.equal(clean, dirty)
    assert not clean.requires_grad
    assert bool((clean[~batch.mask] == 0).all())
    if kind == "tis":
        assert bool(((clean[batch.mask] >= 0.5) & (clean[batch.mask] <= 2.0)).all())
    if kind == "icepop":
        inside = (clean[batch.mask] >= 0.5) & (clean[batch.mask] <= 2.0)
        assert bool((inside | (clean[batch.mask] == 0)).all())


def test_far_apart_policies_stay_finite() -> None:
    batch = make_batch()
    old = torch.full_like(noise(batch, 0), 1e30)
    weights = importance_weights(old, -old, batch.mask, batch.cu_seqlens, kind="none")
    assert bool(weights.isfinite().all())


def test_without_lag_the_three_corrections_are_one() -> None:
    batch = make_batch()
    old, advantages = noise(batch, 1), noise(batch, 3)
    coefficients = batch.mask.double()
    found = []
    for correction in ("decoupled", "behavior", "recompute"):
        log_probs = (old + 0.1 * noise(batch, 2)).requires_grad_()
        start, weights = correct_staleness(
            old,
            old.clone(),
            batch.mask,
            batch.cu_seqlens,
            correction=correction,  # type: ignore[arg-type]
        )
        loss, _ = policy_loss(
            log_probs,
            start,
            advantages,
            batch.mask,
            coefficients,
            eps_clip=0.2,
            eps_clip_high=0.2,
            token_weights=weights,
        )
        found.append(torch.cat([loss[None], *torch.autograd.grad(loss, log_probs)]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_what_is_refused() -> None:
    batch = make_batch()
    x, layout = noise(batch, 0), (batch.mask, batch.cu_seqlens)
    with pytest.raises(ValueError, match="kind='clip'"):
        importance_weights(x, x, *layout, kind="clip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"low=3.0, high=2.0"):
        importance_weights(x, x, *layout, low=3.0)
    with pytest.raises(ValueError, match="correction is 'none'"):
        correct_staleness(x, x, *layout, correction="none")  # type: ignore[arg-type]
