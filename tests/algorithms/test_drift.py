# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The latest numbers against the first ones, across checkpoints."""

from __future__ import annotations

import json
import math
import random

import pytest

from megacurl.algorithms.drift import Drift


def test_latest_minus_first() -> None:
    drift = Drift(window=3)
    seen = []
    for number in (1.0, 2.0, 3.0, 7.0, math.nan, 9.0, 11.0, math.inf, 13.0):
        drift.observe(number)
        seen.append(drift.value)
    assert seen[:3] == [None] * 3
    assert seen[3:] == pytest.approx([4 - 2, 4 - 2, 19 / 3 - 2, 9 - 2, 9 - 2, 11 - 2])


@pytest.mark.parametrize("stop", [0, 1, 4, 5, 20])
def test_a_checkpoint_anywhere_changes_nothing(stop: int) -> None:
    r = random.Random(0)
    numbers = [r.uniform(-1, 1) for _ in range(30)]
    whole, before, after = Drift(4), Drift(4), Drift(4)
    for number in numbers[:stop]:
        before.observe(number)
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert after.value == before.value
    for number in numbers[stop:]:
        after.observe(number)
    for number in numbers:
        whole.observe(number)
    assert after.value == whole.value
    assert after.state_dict() == whole.state_dict()


def test_damage_is_named_and_changes_nothing() -> None:
    drift = Drift(2)
    for number in (1.0, 2.0, 5.0):
        drift.observe(number)
    for damaged in (
        {"count": 3, "first": [1.0], "latest": [2.0, 5.0]},
        {"count": 1, "first": [1.0, 2.0], "latest": [2.0, 5.0]},
        {"count": 3, "first": [1.0, 2.0]},
    ):
        with pytest.raises(ValueError, match="the drift state is damaged"):
            drift.load_state_dict(damaged)
        assert drift.value == 2.0
    drift.load_state_dict({})
    assert drift.value is None
    with pytest.raises(ValueError, match="window is 0"):
        Drift(0)
