# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Beta posteriors by question."""

from __future__ import annotations

import json

import pytest

from megacurl.curriculum.posterior import BetaTracker


def test_conjugate_update_and_relative_change() -> None:
    tracker = BetaTracker()
    first = tracker.observe({"a": (4, 16), "b": (0, 16)})
    assert (first["a"].alpha, first["a"].beta) == (5.0, 13.0)
    assert first["a"].old_mean == first["a"].previous == 0.5 and first["a"].delta is None
    second = tracker.observe({"a": (6, 16)})["a"]
    assert (second.alpha, second.beta, second.latest, second.previous) == (11, 23, 6 / 16, 4 / 16)
    assert second.delta == pytest.approx((11 / 34 - 5 / 18) / (5 / 18), rel=1e-15)
    assert tracker.records["a"].visits == 2 and tracker.records["b"].visits == 1


def test_decay_pulls_old_counts_to_the_prior() -> None:
    forgetful = BetaTracker((2.0, 3.0), decay=0.0)
    forgetful.observe({"a": (16, 16)})
    update = forgetful.observe({"a": (1, 4)})["a"]
    assert (update.alpha, update.beta) == (3.0, 6.0)
    half = BetaTracker(decay=0.5)
    half.observe({"a": (4, 16)})
    assert half.observe({"a": (6, 16)})["a"].alpha == 0.5 * 5 + 0.5 * 1 + 6


def test_moving_average_starts_at_the_first_accuracy() -> None:
    tracker = BetaTracker(ema=0.75)
    assert tracker.observe({"a": (2, 4)})["a"].ema == 0.5
    assert tracker.observe({"a": (4, 4)})["a"].ema == 0.75 * 0.5 + 0.25


@pytest.mark.parametrize("counts", [(5, 4), (-1, 4), (0, 0)])
def test_impossible_counts_change_nothing(counts: tuple[int, int]) -> None:
    tracker = BetaTracker()
    with pytest.raises(ValueError, match="question 'bad' has"):
        tracker.observe({"good": (1, 2), "bad": counts})
    assert len(tracker) == 0


def test_state_survives_json_exactly() -> None:
    tracker = BetaTracker((0.3, 0.7), decay=0.9, ema=0.1)
    for i in range(50):
        tracker.observe({f"q{i % 7}": (i % 5, 6), "every": (i % 3, 3)})
    copy = BetaTracker((0.3, 0.7), decay=0.9, ema=0.1)
    copy.load_state_dict(json.loads(json.dumps(tracker.state_dict())))
    assert copy.records == tracker.records and copy.metrics() == tracker.metrics()
    assert list(copy.records) == list(tracker.records)
    assert copy.observe({"q3": (1, 6)}) == tracker.observe({"q3": (1, 6)})


def test_damaged_state_is_refused_and_changes_nothing() -> None:
    tracker = BetaTracker()
    tracker.observe({"a": (1, 2)})
    good = tracker.state_dict()
    for damage, message in (
        ({k: v for k, v in good.items() if k != "ema"}, r"lacks \['ema'\]"),
        ({**good, "alpha": []}, "columns are"),
        ({name: column * 2 for name, column in good.items()}, "ids repeat"),
    ):
        with pytest.raises(ValueError, match=message):
            tracker.load_state_dict(damage)
    assert tracker.state_dict() == good


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": (0.0, 1.0)}, "beta_prior is"),
        ({"decay": 1.1}, "beta_decay is 1.1"),
        ({"ema": 1.0}, "wd_ema is 1.0"),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BetaTracker(**arguments)
