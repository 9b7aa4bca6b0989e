# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The critic's loss, plain and clipped."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.aggregation import global_denominators, token_coefficients
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.value_loss import ValueStats, value_loss
from tests.algorithms.batches import CUTS, make_batch, noise


@pytest.mark.parametrize("value_clip", [None, 0.2])
def test_equals_the_max_formula(value_clip: float | None) -> None:
    batch = make_batch()
    values, returns, old = (noise(batch, s) for s in (1, 2, 3))
    values.requires_grad_()
    coefs = torch.where(batch.mask, 0.1, 0.0)
    loss, stats = value_loss(
        batch.poisoned(values), batch.poisoned(returns), batch.poisoned(old), batch.mask, coefs,
        value_clip=value_clip,
    )  # fmt: skip
    error = (values - returns).square()
    expected = error
    if value_clip is not None:
        clipped = torch.clamp(values, old - value_clip, old + value_clip)
        expected = torch.maximum(error, (clipped - returns).square())
    total = 0.05 * expected[batch.mask].sum()
    torch.testing.assert_close(loss, total)
    found, wanted = (torch.autograd.grad(x, values)[0] for x in (loss, total))
    torch.testing.assert_close(found, wanted)
    assert bool((found[~batch.mask] == 0).all())
    mse = float(error.detach()[batch.mask].mean())
    assert stats.metrics()["mse"] == pytest.approx(mse, rel=1e-12)
    assert (stats.metrics()["clip_frac"] > 0) == (value_clip is not None)


@pytest.mark.parametrize("cut", CUTS)
def test_cut_and_order_do_not_matter(cut: list[list[int]]) -> None:
    batch = make_batch()
    values, returns, old = (noise(batch, s) for s in (1, 2, 3))
    denominators = global_denominators(valid_lengths(batch.mask, batch.cu_seqlens))
    total, merged = 0.0, ValueStats(*(torch.zeros(()) for _ in range(3)))
    for sequences in cut:
        part, (v, r, o) = batch.part(sequences, values, returns, old)
        coefs = token_coefficients(
            part.mask, part.cu_seqlens, "token-mean", denominators, dtype=torch.float64
        )
        loss, stats = value_loss(v, r, o, part.mask, coefs, half=False)
        total, merged = total + loss.item(), merged.merge(stats)
    mse = float((values - returns)[batch.mask].square().mean())
    assert total == pytest.approx(mse, rel=1e-12)
    assert merged.metrics()["mse"] == pytest.approx(mse, rel=1e-12)


def test_bad_clip_and_empty_batch() -> None:
    none = torch.zeros(0)
    with pytest.raises(ValueError, match="value_clip is 0"):
        value_loss(none, none, none, none.bool(), none, value_clip=0.0)
    loss, stats = value_loss(none, none, none, none.bool(), none, value_clip=0.2)
    assert loss.item() == 0 and stats.metrics() == {"clip_frac": 0.0, "mse": 0.0}
