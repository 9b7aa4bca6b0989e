# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VCRL's normalised variance: range, agreement of the two forms, and what is refused."""

from __future__ import annotations

import pytest

from megacurl.curriculum.group_variance import binary_group_variance, group_variance


@pytest.mark.parametrize("attempts", range(1, 18))
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0)])
def test_graded_and_binary_agree(attempts: int, low: float, high: float) -> None:
    found = [binary_group_variance(k, attempts) for k in range(attempts + 1)]
    assert found == found[::-1]
    assert max(found) == (1.0 if attempts > 1 else 0.0)
    for k, expected in enumerate(found):
        rewards = [high] * k + [low] * (attempts - k)
        assert group_variance(rewards, low=low, high=high) == pytest.approx(expected, abs=1e-12)


def test_partial_credit_lies_between() -> None:
    assert 0 < group_variance([0.2, 0.4, 0.9, 0.4], low=0.0, high=1.0) < 1


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="5 successes of 4"):
        binary_group_variance(5, 4)
    for rewards, low, high in (([], 0.0, 1.0), ([0.5], 1.0, 1.0), ([2.0], 0.0, 1.0)):
        with pytest.raises(ValueError, match="rewards"):
            group_variance(rewards, low=low, high=high)
