# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The invariants that the docstring of megatron/schedule.py lists."""

from __future__ import annotations

import random

import pytest

from megacurl.megatron.schedule import plan_micro_batches


def random_case(seed: int) -> tuple[list[int], list[int], int, int, int]:
    r = random.Random(seed)
    mini = r.choice([1, 2, 3, 8])
    count = r.randint(1, 40)
    longest = r.choice([5, 50, 500])
    lengths = [r.randint(1, longest) for _ in range(count)]
    order = r.sample(range(count), count)
    return lengths, order, mini, r.choice([1, 2, 3, 8]), r.choice([10, 100, 1000])


@pytest.mark.parametrize("seed", range(60))
def test_invariants(seed: int) -> None:
    lengths, order, mini, dp, max_tokens = random_case(seed)
    multiple = 1 + seed % 4
    plan = plan_micro_batches(
        lengths,
        order=order,
        mini_batches=mini,
        dp_size=dp,
        max_tokens=max_tokens,
        count_multiple=multiple,
    )
    everything = sorted(i for rank in range(dp) for i in plan.order_of_rank(rank))
    assert everything == list(range(len(lengths)))
    for mini_batch in plan.mini_batches:
        assert len(mini_batch) == dp
        members = {i for rank in mini_batch for micro in rank for i in micro}
        size, larger = divmod(len(order), mini)
        assert len(members) in (size, size + bool(larger))
        assert len({len(rank) for rank in mini_batch}) == 1
        assert len(mini_batch[0]) % multiple == 0
        loads = [sum(lengths[i] for micro in rank for i in micro) for rank in mini_batch]
        assert max(loads) - min(loads) <= max((lengths[i] for i in members), default=0)
        for rank in mini_batch:
            for micro in rank:
                assert len(micro) <= 1 or sum(lengths[i] for i in micro) <= max_tokens


@pytest.mark.parametrize("seed", range(10))
def test_mini_batches_do_not_depend_on_the_ranks(seed: int) -> None:
    lengths, order, mini, _, max_tokens = random_case(seed)
    members = [
        [
            {i for rank in mini_batch for micro in rank for i in micro}
            for mini_batch in plan_micro_batches(
                lengths, order=order, mini_batches=mini, dp_size=dp, max_tokens=max_tokens
            ).mini_batches
        ]
        for dp in (1, 2, 5)
    ]
    assert members[0] == members[1] == members[2]


def test_a_rank_without_work_keeps_the_others_company() -> None:
    plan = plan_micro_batches([10, 10], order=[0, 1], mini_batches=1, dp_size=3, max_tokens=10)
    ((first, second, third),) = plan.mini_batches
    assert sorted([first, second, third]) == [((),), ((0,),), ((1,),)]


def test_consecutive_responses_of_the_order_form_a_mini_batch() -> None:
    plan = plan_micro_batches(
        [1] * 7, order=[6, 5, 4, 3, 2, 1, 0], mini_batches=3, dp_size=1, max_tokens=9
    )
    members = [sorted(i for rank in m for micro in rank for i in micro) for m in plan.mini_batches]
    assert members == [[5, 6], [3, 4], [0, 1, 2]]


def test_more_mini_batches_than_responses_leave_some_empty() -> None:
    plan = plan_micro_batches([1, 1], order=[0, 1], mini_batches=4, dp_size=2, max_tokens=9)
    assert sorted(i for rank in range(2) for i in plan.order_of_rank(rank)) == [0, 1]
    assert [len(mini[0]) for mini in plan.mini_batches] == [0, 1, 0, 1]
