# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VCRL's normalised variance: its formula for two values, partial credit, what is refused."""

from __future__ import annotations

import statistics

import pytest

from megacurl.curriculum.group_variance import group_variance


@pytest.mark.parametrize("attempts", range(1, 18))
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0)])
def test_two_values_give_the_papers_formula_to_the_bit(
    attempts: int, low: float, high: float
) -> None:
    largest = max((attempts // 2) * ((attempts + 1) // 2), 1)
    for k in range(attempts + 1):
        rewards = [high] * k + [low] * (attempts - k)
        assert group_variance(rewards, low=low, high=high) == k * (attempts - k) / largest


def test_partial_credit_is_the_unbiased_variance_over_the_largest() -> None:
    rewards = [0.2, 0.4, 0.9, 0.4]
    largest = statistics.variance([0.0, 0.0, 1.0, 1.0])
    found = group_variance(rewards, low=0.0, high=1.0)
    assert found == pytest.approx(statistics.variance(rewards) / largest, rel=1e-12)
    assert group_variance(rewards[::-1], low=0.0, high=1.0) == pytest.approx(found, rel=1e-12)
    assert group_variance([0.1] * 7, low=0.0, high=1.0) == 0.0  # not rounding above a threshold


def test_what_is_refused() -> None:
    for rewards, low, high in (([], 0.0, 1.0), ([0.5], 1.0, 1.0), ([2.0], 0.0, 1.0)):
        with pytest.raises(ValueError, match="rewards"):
            group_variance(rewards, low=low, high=high)
