# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Mergeable moments, and whitening by the moments of the global batch."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.moments import Moments
from megacurl.algorithms.whiten import whiten
from tests.algorithms.batches import CUTS, make_batch, noise


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_merged_moments_equal_those_of_the_whole(cut: list[list[int]], offset: float) -> None:
    batch = make_batch()
    x = noise(batch, 1) + offset
    parts = []
    for sequences in cut:
        part, (y,) = batch.part(sequences, x)
        parts.append(Moments.from_tensor(Moments.of(part.poisoned(y), part.mask).to_tensor()))
    merged = Moments.merge_all(parts)
    valid = x[batch.mask]
    assert merged.count == valid.numel()
    assert merged.mean == pytest.approx(float(valid.mean()), rel=1e-12)
    for ddof in (0, 1):
        expected = float((valid - valid.mean()).square().sum() / (valid.numel() - ddof))
        assert merged.variance(ddof) == pytest.approx(expected, rel=1e-9)


def test_float32_numbers_with_a_large_offset_have_no_negative_variance() -> None:
    x = torch.tensor([4096.25, 4096.5, 4096.75])
    assert Moments.of(x).variance() == pytest.approx(0.125 / 3, rel=1e-12)
    assert Moments.of(torch.full((1000,), 4096.1)).variance() == 0.0


def test_whitening_ignores_masked_tokens_and_uses_the_given_moments() -> None:
    batch = make_batch()
    x = noise(batch, 1) * 3 + 5
    moments = Moments.of(x, batch.mask)
    y = whiten(batch.poisoned(x), batch.mask, moments, ddof=1)
    assert bool((y[~batch.mask] == 0).all())
    assert float(y[batch.mask].mean()) == pytest.approx(0, abs=1e-12)
    assert float(y[batch.mask].var()) == pytest.approx(1, rel=1e-7)
    part, (piece, whole) = batch.part([4, 6], x, y)
    assert torch.equal(whiten(piece, part.mask, moments, ddof=1), whole)
    assert not torch.equal(whiten(piece, part.mask, Moments.of(piece, part.mask), ddof=1), whole)


def test_degenerate_batches_give_zeros() -> None:
    one = torch.tensor([7.0, 9.0])
    mask = torch.tensor([True, False])
    for moments, chosen in ((Moments.of(one, mask), mask), (Moments(), torch.zeros(2).bool())):
        for ddof in (0, 1):
            assert whiten(one, chosen, moments, ddof=ddof).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="eps_mode is 'max'"):
        whiten(one, mask, Moments(), ddof=0, eps_mode="max")


def test_small_variance_is_guarded_in_both_ways() -> None:
    x, mask = torch.tensor([1e-5, -1e-5], dtype=torch.float64), torch.ones(2).bool()
    moments = Moments.of(x, mask)
    added = whiten(x, mask, moments, ddof=0, eps=1e-8, eps_mode="add")
    clamped = whiten(x, mask, moments, ddof=0, eps=1e-8, eps_mode="clamp")
    assert added[0] == pytest.approx(1e-5 / (1e-10 + 1e-8) ** 0.5)
    assert clamped[0] == pytest.approx(0.1)
