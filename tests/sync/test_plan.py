# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The weight plan: every engine element once and right, the work shared, for any layout."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from megacurl.sync.boxes import matrix_shape
from megacurl.sync.plan import SyncPlan, Transfer
from megacurl.sync.plan_copy import copy_transfers
from tests.sync.layouts import (
    Case,
    cell_of,
    draw_case,
    engine_shards,
    numbered_tensors,
    real_case,
    trainer_shards,
)

CASES, BATCH = 500, 50
ALLOWED = 1.1


def matrix(tensor: torch.Tensor) -> Any:
    """A numpy array of two dimensions: indexing it is ten times as fast as indexing a tensor."""
    return tensor.reshape(len(tensor), -1).numpy()


def replicas(case: Case) -> range:
    return range(case.engine.replicas)


def assert_carried_out_exactly(case: Case, transfers: list[Transfer]) -> None:
    """Add numbered elements up where they are sent to: twice, or none, would be another number."""
    hf = numbered_tensors(case.parameters())
    held = {key: matrix(t) for key, t in trainer_shards(case, hf).items()}
    tensors = {name: matrix(t) for name, t in hf.items()}
    wanted = [{n: matrix(t) for n, t in shard.items()} for shard in engine_shards(case, hf)]
    got = [[{n: np.zeros_like(a) for n, a in s.items()} for s in wanted] for _ in replicas(case)]
    for t in transfers:
        row, column = t.source_at
        source = held[(*cell_of(case.trainer, t.sender), t.source)]
        part = source[row : row + t.box.rows, column : column + t.box.columns]
        assert part.shape == (t.box.rows, t.box.columns)
        assert part[0, 0] == tensors[t.tensor][t.box.row, t.box.column]
        row, column = t.target_at
        for name in t.targets:
            target = got[t.replica][t.engine_rank][name]
            target[row : row + t.box.rows, column : column + t.box.columns] += part
    for replica in replicas(case):
        for mine, right in zip(got[replica], wanted, strict=True):
            assert all(np.array_equal(mine[name], right[name]) for name in right)


def assert_work_is_shared(case: Case, plan: SyncPlan, transfers: list[Transfer]) -> None:
    """Nobody sends more than 1.1 x the lower bound, or a row of a matrix more than it."""
    sent: Counter[int] = Counter()
    for t in transfers:
        sent[t.sender] += t.box.elements
    assert sent == Counter({rank: n for rank, n in plan.sent.items() if n})
    assert plan.received == plan.shards
    assert sum(sent.values()) == sum(plan.shards) * case.engine.replicas
    row = max(matrix_shape(shape)[1] for p in plan.parameters for shape in p.shapes)
    least = plan.least_possible
    assert least <= max(sent.values()) <= max(ALLOWED * least, least + row)


@pytest.mark.parametrize("batch", range(CASES // BATCH))
def test_any_layout(batch: int) -> None:
    r = random.Random(batch)
    for _ in range(BATCH):
        case = draw_case(r)
        plan = case.plan()
        transfers = list(plan.transfers())
        assert_carried_out_exactly(case, transfers)
        assert_work_is_shared(case, plan, transfers)


def test_what_was_drawn_covers_the_hard_cases() -> None:
    cases = [draw_case(r) for r in map(random.Random, range(CASES // BATCH)) for _ in range(BATCH)]
    assert {case.trainer.tp for case in cases} == {case.engine.tp for case in cases}
    assert {case.trainer.tp for case in cases} == set(range(1, 9))
    assert {case.trainer.pp for case in cases} == {1, 2, 3, 4}
    hard: dict[str, Callable[[Case], bool]] = {
        "fewer key/value heads than ranks": lambda c: c.shape.num_query_groups < c.trainer.tp,
        "or than those of an engine": lambda c: c.shape.num_query_groups < c.engine.tp,
        "interleaved": lambda c: c.trainer.chunks > 1 and c.trainer.pp > 1,
        "tied over stages": lambda c: c.shape.tied and c.trainer.pp > 1,
        "odd vocabulary": lambda c: c.shape.vocab_size % 2 == 1,
        "ranks without a word": lambda c: c.vocab_divisible_by == 128 and c.trainer.tp > 4,
        "not fused": lambda c: not c.engine.fused,
        "more engines than trainer replicas": lambda c: c.engine.replicas > c.trainer.dp,
    }
    for what, applies in hard.items():
        assert sum(map(applies, cases)) >= 20, what


@pytest.mark.parametrize(
    "layout",
    [
        ("qwen2.5-7b", 4, 8, 2, 1, 4, 8),
        ("qwen2.5-7b", 2, 16, 4, 7, 2, 12),
        ("qwen2.5-7b", 1, 64, 1, 1, 1, 40),
        ("qwen2.5-32b", 8, 4, 4, 4, 4, 6),
        ("qwen2.5-32b", 4, 16, 2, 1, 8, 1),
        ("qwen2.5-72b", 8, 16, 4, 5, 8, 64),
        ("qwen2.5-72b", 8, 4, 8, 1, 4, 3),
        ("llama-3-70b", 4, 8, 8, 2, 8, 5),
        ("llama-3-70b", 8, 1, 8, 1, 16, 2),
    ],
    ids=str,
)
def test_real_models_on_64_to_512_ranks(layout: tuple[str, int, int, int, int, int, int]) -> None:
    case = real_case(*layout)
    plan = case.plan()
    assert case.trainer.world_size in (64, 128, 256, 512)
    assert plan.least_possible <= max(plan.sent.values()) <= ALLOWED * plan.least_possible
    assert plan.received == plan.shards
    assert sum(plan.sent.values()) == sum(plan.shards) * case.engine.replicas
    for replica in {0, case.engine.replicas // 2, case.engine.replicas - 1}:
        assert_tiles_every_shard(case, list(plan.transfers(replica=replica)))
    sizes = bucket_sizes(plan)
    for bucket, size in zip(plan.buckets, sizes, strict=True):
        assert size <= case.bucket_elements or len(bucket.parameters) == 1
    numbers = [number for bucket in plan.buckets for number in bucket.parameters]
    assert numbers == list(range(len(plan.parameters)))


def bucket_sizes(plan: SyncPlan) -> list[int]:
    """What the fullest rank of engine 0 receives in every bucket."""
    sizes: list[Counter[int]] = [Counter() for _ in plan.buckets]
    for t in plan.transfers(replica=0):
        sizes[t.bucket][t.engine_rank] += t.box.elements
    return [max(size.values()) for size in sizes]


def assert_tiles_every_shard(case: Case, transfers: list[Transfer]) -> None:
    """The boxes that arrive in a parameter are disjoint, inside it, and as large as it together."""
    arrived: dict[tuple[int, str], list[tuple[int, int, int, int]]] = defaultdict(list)
    for t in transfers:
        (row, column), box = t.target_at, t.box
        place = row, column, row + box.rows, column + box.columns
        for name in t.targets:
            arrived[t.engine_rank, name].append(place)
    shards = engine_shards(case, meta_tensors(case))
    assert arrived.keys() == {(rank, n) for rank, shard in enumerate(shards) for n in shard}
    for (rank, name), places in arrived.items():
        rows, columns = matrix_shape(tuple(shards[rank][name].shape))
        if "embed" in name or "lm_head" in name:  # the last rows are padding
            rows = min(rows, case.shape.vocab_size - rank * rows)
        assert sum((c - a) * (d - b) for a, b, c, d in places) == rows * columns
        assert all(0 <= a < c <= rows and 0 <= b < d <= columns for a, b, c, d in places)
        for (a, b, c, d), (e, f, g, h) in itertools.combinations(places, 2):
            assert c <= e or g <= a or d <= f or h <= b, name


def meta_tensors(case: Case) -> dict[str, torch.Tensor]:
    return {
        name: torch.empty(shape, device="meta")
        for p in case.parameters()
        for name, shape in zip(p.hf, p.shapes, strict=True)
    }


@pytest.mark.parametrize("seed", range(20))
def test_carried_out_by_plain_copies(seed: int) -> None:
    """Trainer in bfloat16 -> engine shards, bit for bit, also into the head of a tied model."""
    case = draw_case(random.Random(seed))
    hf = {n: torch.randn(t.shape).bfloat16() for n, t in meta_tensors(case).items()}
    held, wanted = trainer_shards(case, hf), engine_shards(case, hf)
    got = [[{n: torch.zeros_like(t) for n, t in s.items()} for s in wanted] for _ in replicas(case)]
    copy_transfers(
        case.plan().transfers(),
        lambda rank, name: held[(*cell_of(case.trainer, rank), name)],
        lambda replica, rank, name: got[replica][rank][name],
    )
    for engine in got:
        for mine, right in zip(engine, wanted, strict=True):
            assert mine.keys() == right.keys()
            assert all(torch.equal(mine[name], right[name]) for name in right)


def test_a_sender_and_an_engine_find_their_own_transfers() -> None:
    case = draw_case(random.Random(3))
    plan = case.plan()
    every = list(plan.transfers())
    for sender in range(case.trainer.world_size):
        assert list(plan.transfers(sender=sender)) == [t for t in every if t.sender == sender]
    for replica in replicas(case):
        assert list(plan.transfers(replica=replica)) == [t for t in every if t.replica == replica]
    assert [t.bucket for t in every] == sorted(t.bucket for t in every)


def test_engines_that_are_a_multiple_of_the_replicas_are_served_whole() -> None:
    """No slice is cut, and a trainer rank serves the same engines in every bucket."""
    plan = real_case("qwen2.5-7b", 4, 8, 2, 1, 4, 16).plan()
    served = defaultdict(set)
    for bucket in plan.buckets:
        for share in bucket.shares:
            assert (share.start, share.stop) == (0, share.queue.elements)
            served[share.sender].add(share.replica)
    assert {len(engines) for engines in served.values()} == {2}


def test_messages_and_slices_are_counted() -> None:
    for seed in range(5):
        plan = draw_case(random.Random(seed)).plan()
        every = list(plan.transfers())
        pairs = {(t.bucket, t.sender, t.replica, t.engine_rank) for t in every}
        assert plan.count() == (len(pairs), len(every))
