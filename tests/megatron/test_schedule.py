# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The invariants that the docstring of megatron/schedule.py lists."""

from __future__ import annotations

import random

import pytest

from megacurl.megatron.schedule import plan_micro_batches


def random_case(seed: int) -> tuple[list[int], list[int], int, int, int]:
    r = random.Random(seed)
    mini = r.choice([1, 2, 3, 8])
    count = mini * r.randint(1, 6)
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
        mini_batch_size=mini,
        dp_size=dp,
        max_tokens=max_tokens,
        count_multiple=multiple,
    )
    everything = sorted(i for rank in range(dp) for i in plan.order_of_rank(rank))
    assert everything == list(range(len(lengths)))
    for number, mini_batch in enumerate(plan.mini_batches):
        assert len(mini_batch) == dp
        members = {i for rank in mini_batch for micro in rank for i in micro}
        assert members == set(order[number * mini : (number + 1) * mini])
        assert len({len(rank) for rank in mini_batch}) == 1
        assert len(mini_batch[0]) % multiple == 0
        loads = [sum(lengths[i] for micro in rank for i in micro) for rank in mini_batch]
        assert max(loads) - min(loads) <= max(lengths[i] for i in members)
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
                lengths, order=order, mini_batch_size=mini, dp_size=dp, max_tokens=max_tokens
            ).mini_batches
        ]
        for dp in (1, 2, 5)
    ]
    assert members[0] == members[1] == members[2]


def test_a_rank_without_work_keeps_the_others_company() -> None:
    plan = plan_micro_batches([10, 10], order=[0, 1], mini_batch_size=2, dp_size=3, max_tokens=10)
    ((first, second, third),) = plan.mini_batches
    assert sorted([first, second, third]) == [((),), ((0,),), ((1,),)]


def test_sizes_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="3 responses cannot be cut into mini-batches of 2"):
        plan_micro_batches([1] * 3, order=[0, 1, 2], mini_batch_size=2, dp_size=1, max_tokens=9)
