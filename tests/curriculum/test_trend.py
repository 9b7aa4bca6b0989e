# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The stagnation test."""

from __future__ import annotations

import pytest

from megacurl.curriculum.trend import stagnation_test

HARD, EASY = [0.1, 0.2, 0.3], [0.8, 0.9]


def test_bounds_belong_to_the_sets_and_the_middle_does_not() -> None:
    # Binary fractions, so that the means of equal numbers are exact.
    deltas = [0.0625, -0.0625, 0.0625, 9.0, 9.0, 0.03125, 0.03125]
    bounds = {"low_delta": 0.0625, "high_delta": 0.03125}
    test = stagnation_test([*HARD, 0.31, 0.79, *EASY], deltas, **bounds)
    assert test.stagnant and (test.n_low, test.n_high) == (3, 2)
    assert (test.mean_low_delta, test.mean_high_delta) == (0.0625, 0.03125)
    assert not stagnation_test(HARD, [0.0626] * 3, **bounds).low_ok


def test_hard_side_is_absolute_easy_side_is_signed() -> None:
    falling = stagnation_test([0.2, 0.9], [-0.5, -0.5])
    assert not falling.low_ok and falling.high_ok and not falling.stagnant


def test_mean_all_and_fraction_differ() -> None:
    means, deltas = [*HARD, 0.9], [0.0, 0.0, 0.06, 0.0]
    verdicts = {
        (aggregate, frac): stagnation_test(means, deltas, aggregate=aggregate, frac=frac).low_ok
        for aggregate, frac in (("mean", 1.0), ("all", 0.1), ("frac", 0.6), ("frac", 0.7))
    }
    assert verdicts == {
        ("mean", 1.0): True, ("all", 0.1): False, ("frac", 0.6): True, ("frac", 0.7): False,
    }  # fmt: skip


@pytest.mark.parametrize("aggregate", ["mean", "all", "frac"])
def test_empty_sets(aggregate: str) -> None:
    for means, deltas in (([0.1], [0.0]), ([0.9], [0.0]), ([], []), ([0.1, 0.9], [None, None])):
        for empty in (False, True):
            test = stagnation_test(means, deltas, aggregate=aggregate, empty_is_stagnant=empty)
            assert test.stagnant is empty


def test_verdict_does_not_depend_on_the_order_of_questions() -> None:
    deltas = [0.1, 0.2, 0.3, -0.6, 1e-17, 0.05]
    one = stagnation_test([0.9] * 6, deltas).mean_high_delta
    assert stagnation_test([0.9] * 6, deltas[::-1]).mean_high_delta == one


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="2 means but 1 deltas"):
        stagnation_test([0.1, 0.2], [0.0])
    with pytest.raises(ValueError, match="trend_aggregate is 'median'"):
        stagnation_test([0.1], [0.0], aggregate="median")
