# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The cursor: every item once an epoch, no repeats in a batch, exact resume anywhere."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from megacurl.data import DataError, Prompt, PromptCursor


def prompts(n: int, answer: str = "1") -> list[Prompt]:
    return [Prompt(f"p{i}", ({"role": "user", "content": f"q{i}"},), answer, "s") for i in range(n)]


def ids(batch: list[Prompt]) -> list[str]:
    return [p.id for p in batch]


@pytest.mark.parametrize(("size", "batch"), [(10, 4), (7, 7), (7, 6), (5, 1), (3, 2), (1, 1)])
def test_every_epoch_serves_each_item_once_and_batches_never_repeat(size: int, batch: int) -> None:
    cursor = PromptCursor(prompts(size), seed=3)
    served: list[str] = []
    epochs = 12
    while len(served) < size * epochs:
        taken = ids(cursor.next(batch))
        assert len(set(taken)) == batch
        served += taken
        assert cursor.epoch == len(served) // size
        counts = Counter(served)
        # An item of the new epoch is late by a batch at most: nobody is skipped for good.
        assert max(counts.values()) - min(counts.get(p.id, 0) for p in prompts(size)) <= 1
    assert set(Counter(served[: size * epochs]).values()) == {epochs}


def test_orders_differ_by_epoch_and_seed_and_ignore_global_random_state() -> None:
    random.seed(1)
    first = PromptCursor(prompts(50), seed=0)
    epoch0, epoch1 = ids(first.next(50)), ids(first.next(50))
    random.seed(2)
    again = PromptCursor(prompts(50), seed=0)
    assert ids(again.next(50)) == epoch0 != epoch1
    assert ids(PromptCursor(prompts(50), seed=1).next(50)) != epoch0
    assert sorted(epoch0) == sorted(epoch1)
    plain = PromptCursor(prompts(4), seed=0, shuffle=False)
    assert ids(plain.next(3)) + ids(plain.next(3)) == ["p0", "p1", "p2", "p3", "p0", "p1"]


def test_order_is_fixed_for_all_time() -> None:
    """A checkpoint must resume under another Python or numpy: the order is part of the format."""
    assert ids(PromptCursor(prompts(6), seed=7).next(6)) == ["p5", "p2", "p3", "p4", "p0", "p1"]


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 10])
def test_resume_after_every_batch(batch: int) -> None:
    """Mid-epoch, in a batch that crosses epochs, and exactly at the boundary (10 % 5 == 0)."""
    whole = PromptCursor(prompts(10), seed=5)
    states, batches = [], []
    for _ in range(15):
        states.append(json.loads(json.dumps(whole.state_dict())))
        batches.append(ids(whole.next(batch)))
    for position, state in enumerate(states):
        resumed = PromptCursor(prompts(10), seed=5)
        resumed.load_state_dict(state)
        assert [ids(resumed.next(batch)) for _ in batches[position:]] == batches[position:]
        assert resumed.state_dict() == whole.state_dict()


def test_state_at_the_boundary_already_stands_in_the_next_epoch() -> None:
    cursor = PromptCursor(prompts(4), seed=5)
    cursor.next(4)
    state = cursor.state_dict()
    assert (state["epoch"], state["offset"]) == (1, 0)
    assert cursor.metrics() == {"data/epoch": 1.0}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (PromptCursor(prompts(9), seed=5), "size 10, this run has 9"),
        (
            PromptCursor(prompts(10, "2"), seed=5),
            "fingerprint .* a prompt, an answer or their order",
        ),
        (PromptCursor(prompts(10)[::-1], seed=5), "fingerprint"),
        (PromptCursor(prompts(10), seed=6), "seed 5, this run has 6"),
        (PromptCursor(prompts(10), seed=5, shuffle=False), "shuffle True, this run has False"),
    ],
)
def test_refuses_the_state_of_another_run(other: PromptCursor[Prompt], message: str) -> None:
    state = PromptCursor(prompts(10), seed=5).state_dict()
    before = other.state_dict()
    with pytest.raises(DataError, match=message):
        other.load_state_dict(state)
    assert other.state_dict() == before


def test_refuses_broken_states() -> None:
    cursor = PromptCursor(prompts(3), seed=0)
    state = cursor.state_dict()
    with pytest.raises(DataError, match=r"lacks \['offset'\]"):
        cursor.load_state_dict({k: v for k, v in state.items() if k != "offset"})
    with pytest.raises(DataError, match="out of range"):
        cursor.load_state_dict(state | {"offset": 4})
    with pytest.raises(DataError, match="out of range"):
        cursor.load_state_dict(state | {"deferred": [3]})


def test_sizes_are_checked() -> None:
    cursor = PromptCursor(prompts(3), seed=0)
    for n in (0, -1, 4):
        with pytest.raises(DataError, match=f"batch of {n} different prompts out of 3"):
            cursor.next(n)
    with pytest.raises(DataError, match="at least one prompt"):
        PromptCursor([], seed=0)


def test_pairs_are_served_whole() -> None:
    pairs = [(p, [1, 2]) for p in prompts(3)]
    assert PromptCursor(pairs, seed=0, shuffle=False).next(2) == pairs[:2]
