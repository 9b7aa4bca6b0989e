# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Moments and whitening where rounding or too few numbers could spoil them."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.moments import Moments
from megacurl.algorithms.whiten import whiten


def test_float32_numbers_with_a_large_offset_have_no_negative_variance() -> None:
    x = torch.tensor([4096.25, 4096.5, 4096.75])
    assert Moments.of(x).variance() == pytest.approx(0.125 / 3, rel=1e-12)
    assert Moments.of(torch.full((1000,), 4096.1)).variance() == 0.0


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
