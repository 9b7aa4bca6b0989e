# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The replay bank: order, momentum, capacity, and exact resumption."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from megacurl.curriculum.replay_bank import ReplayBank


def test_ties_go_to_the_older_and_excluded_ones_are_passed_over() -> None:
    bank = ReplayBank()
    for question, variance in (("a", 0.5), ("b", 0.9), ("c", 0.5), ("d", 0.9)):
        bank.keep(question, variance, 0)
    assert bank.take(3) == ["b", "d", "a"]
    assert bank.take(9, exclude={"b", "a"}) == ["d", "c"]
    assert bank.take(0) == bank.take(-1) == []
    assert len(bank) == 4


def test_a_question_leaves_after_its_last_replay_and_may_come_back() -> None:
    bank = ReplayBank(max_replays=2)
    bank.keep("a", 1.0, 0)
    bank.replayed("a", 0.5, 1)
    assert bank.entries["a"].priority == pytest.approx(0.95)
    bank.keep("a", 1.0, 2)  # fresh again: a new priority, the count stays
    assert bank.entries["a"].replays == 1
    bank.replayed("a", 0.5, 3)
    assert len(bank) == 0
    bank.keep("a", 0.4, 4)
    assert bank.entries["a"].replays == 0


def test_staleness_lets_long_unused_questions_rise() -> None:
    bank = ReplayBank(beta="staleness", momentum=0.5, max_replays=9)
    bank.keep("a", 1.0, 0)
    bank.replayed("a", 0.0, 6)
    assert bank.entries["a"].priority == pytest.approx(0.5 + 3.0)


def test_a_full_bank_drops_the_lowest_and_of_equals_the_newest() -> None:
    bank = ReplayBank(capacity=2)
    for question, variance in (("a", 0.5), ("b", 0.5), ("c", 0.5), ("d", 0.7)):
        bank.keep(question, variance, 0)
    assert list(bank.entries) == ["a", "d"]


@pytest.mark.parametrize("seed", range(3))
def test_a_restored_bank_goes_on_the_same(seed: int) -> None:
    r = random.Random(seed)
    bank = ReplayBank(capacity=12)
    for step in range(60):
        for question in bank.take(3):
            bank.replayed(question, r.random(), step)
        bank.keep(f"q{r.randrange(40)}", r.random(), step)
        again = ReplayBank(capacity=12)
        again.load_state_dict(json.loads(json.dumps(bank.state_dict())))
        assert again.take(99) == bank.take(99)
        assert again.metrics() == bank.metrics()
        assert all(e.replays < 2 for e in bank.entries.values())
        bank = again


@pytest.mark.parametrize(
    "settings", [{"momentum": 1.5}, {"max_replays": 0}, {"capacity": 0}, {"beta": "age"}]
)
def test_what_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        ReplayBank(**settings)
