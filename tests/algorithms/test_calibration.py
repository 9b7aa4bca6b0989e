# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Brier score, its skill and the reliability of every decile, against loops in plain Python."""

from __future__ import annotations

import math
import random

import pytest
import torch

from megacurl.algorithms.calibration import BINS, Calibration, success_share


def of(predicted: list[float], observed: list[float]) -> Calibration:
    exact = torch.float64
    return Calibration.of(torch.tensor(predicted, dtype=exact), torch.tensor(observed, dtype=exact))


def some(seed: int, size: int = 200) -> tuple[list[float], list[float]]:
    r = random.Random(seed)
    predicted = [r.random() ** 2 for _ in range(size)]
    return predicted, [float(r.random() < p) for p in predicted]


def test_every_number_equals_that_of_a_loop() -> None:
    predicted, observed = some(0)
    found, pairs = of(predicted, observed), list(zip(predicted, observed, strict=True))
    brier = sum((p - y) ** 2 for p, y in pairs) / len(pairs)
    mean = sum(observed) / len(observed)
    of_mean = sum((mean - y) ** 2 for y in observed) / len(observed)
    assert found.count == len(pairs)
    assert found.brier == pytest.approx(brier, rel=1e-12)
    assert found.skill == pytest.approx(1 - brier / of_mean, rel=1e-12)
    error = 0.0
    for k, (gap, share) in enumerate(zip(found.gaps, found.shares, strict=True)):
        inside = [(p, y) for p, y in pairs if k / 10 <= p < (k + 1) / 10]
        assert share == pytest.approx(len(inside) / len(pairs))
        assert gap == pytest.approx(sum(y - p for p, y in inside) / len(inside), abs=1e-12)
        error += abs(sum(y - p for p, y in inside)) / len(pairs)
    assert found.error == pytest.approx(error, rel=1e-12)


def test_known_numbers() -> None:
    found = of([0.25, 0.25, 0.25, 0.25, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0])
    assert found.brier == pytest.approx((0.5625 + 3 * 0.0625 + 1.0) / 5)
    gaps, shares = (
        dict(zip(BINS, found.gaps, strict=True)),
        dict(zip(BINS, found.shares, strict=True)),
    )
    assert gaps["20-30"] == 0.0
    assert gaps["90-100"] == -1.0  # the critic was sure, and wrong
    assert gaps["0-10"] is None
    assert (shares["20-30"], shares["90-100"], shares["0-10"]) == (0.8, 0.2, 0.0)
    assert found.error == pytest.approx(0.2)
    assert of([0.5, 0.5], [0.0, 1.0]).skill == 0.0
    assert of([0.0, 1.0], [0.0, 1.0]).skill == 1.0
    assert of([0.5, 0.5], [0.0, 1.0]).shares[5] == 1.0  # on a border: the upper bin


def test_shards_add_up_to_the_whole() -> None:
    predicted, observed = some(1)
    whole = of(predicted, observed)
    parts = [of(predicted[k::3], observed[k::3]).sums for k in range(3)]
    torch.testing.assert_close(sum(parts), whole.sums, rtol=1e-13, atol=1e-13)


def test_what_is_not_defined_is_none() -> None:
    nothing = of([], [])
    assert nothing.count == 0
    assert (nothing.brier, nothing.skill, nothing.error) == (None, None, None)
    assert nothing.gaps == nothing.shares == [None] * 10
    for outcome in (0.0, 1.0, 0.3):
        assert of([0.1, 0.7, 0.2], [outcome] * 3).skill is None
    with pytest.raises(ValueError, match=r"predicted has shape \(2,\) and observed \(3,\)"):
        of([0.1, 0.2], [1.0, 0.0, 1.0])


def test_nan_is_seen() -> None:
    found = of([math.nan, 0.95], [1.0, 1.0])
    assert math.isnan(found.brier or 0.0)
    assert math.isnan(found.error or 0.0)
    assert found.gaps[9] == pytest.approx(0.05)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1.0), (-3.0, 0.5)])
def test_the_reward_range_becomes_zero_to_one(low: float, high: float) -> None:
    middle, width = (low + high) / 2, high - low
    numbers = torch.tensor([low, middle, high, low - 1e30, high + 0.1, low + 0.3 * width])
    share = success_share(numbers, low=low, high=high)
    assert share.dtype == torch.float64
    assert share.tolist() == pytest.approx([0.0, 0.5, 1.0, 0.0, 1.0, 0.3], abs=1e-6)
    assert success_share(torch.tensor([low, high]), low=low, high=high).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="reward_wrong must be the lower one"):
        success_share(numbers, low=high, high=low)
