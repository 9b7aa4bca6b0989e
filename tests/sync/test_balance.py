# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sharing what several ranks hold: by hand, and against the bound."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from megacurl.sync.balance import (
    CellChooser,
    cell_quotas,
    fill_up,
    lower_bound,
    share_out,
)
from megacurl.sync.boxes import Box, Overlap
from megacurl.sync.queue import Item, Queue

A, B, C, D = (0, 0), (0, 1), (1, 0), (1, 1)


def item(rows: int, columns: int = 1, number: int = 0) -> Item:
    return Item(number, 0, 0, Overlap(0, Box(0, 0, rows, columns), (0, 0), (0, 0)))


def test_bound_by_hand() -> None:
    """The fullest cell, a stage, a tied embedding's two stages, or all ranks."""
    assert lower_bound({(A,): 30, (B,): 10}, dp=2, replicas=1) == 15
    assert lower_bound({(A,): 10, (B,): 10, (A, B): 20}, dp=1, replicas=3) == 60
    assert lower_bound({(A,): 10, (B,): 10, (C,): 0, (D,): 0, (A, C): 8}, 1, 1) == 10
    assert lower_bound({(A,): 10, (C,): 10, (B,): 0, (D,): 0, (A, C): 8}, 1, 1) == 14
    norms = {(A,): 1, (B,): 1, (C,): 1, (D,): 1, (A, B): 6, (C, D): 2}
    assert lower_bound(norms, 1, 1) == 4


def test_fill_up_levels() -> None:
    assert fill_up({A: 5, B: 1, C: 2}, 3) == {A: 0, B: 2, C: 1}
    assert fill_up({A: 5, B: 1, C: 2}, 10) == {A: 1, B: 5, C: 4}
    assert fill_up({A: 5, B: 1}, 0) == {A: 0, B: 0}


@pytest.mark.parametrize("seed", range(50))
def test_quotas_reach_the_bound(seed: int) -> None:
    """Two stages of two cells, a tied embedding and norms: the fullest cell is at the bound."""
    r = random.Random(seed)
    demand = {(cell,): r.randint(0, 50) for cell in (A, B, C, D)}
    demand[A, C] = demand[B, D] = r.randint(0, 40)
    demand[A, B], demand[C, D] = r.randint(0, 3), r.randint(0, 3)
    loads = {cell: demand[cell,] for cell in (A, B, C, D)}
    for holders, quotas in cell_quotas(demand).items():
        assert sum(quotas.values()) == demand[holders]
        assert quotas.keys() == set(holders) and min(quotas.values()) >= 0
        for cell, quota in quotas.items():
            loads[cell] += quota
    assert lower_bound(demand, 1, 1) <= max(loads.values()) <= lower_bound(demand, 1, 1) + 4


def test_shared_items_are_cut_between_rows_where_a_quota_ends() -> None:
    chooser = CellChooser({(A,): 6, (B,): 0, (A, B): 10})
    dealt = [pair for part in (item(3, 2), item(2, 2)) for pair in chooser.choose((A, B), part)]
    assert [(cell, part.overlap.box) for cell, part in dealt] == [
        (A, Box(0, 0, 1, 2)),
        (B, Box(1, 0, 2, 2)),
        (B, Box(0, 0, 2, 2)),
    ]
    assert list(chooser.choose((C,), item(1))) == [(C, item(1))]


def test_a_queue_is_cut_between_rows() -> None:
    queue = Queue([item(2, 3, number=0), item(4, 1, number=1)])
    assert queue.elements == 10
    assert [queue.snap(position) for position in range(11)] == [0, 0, 3, 3, 3, 6, 6, 7, 8, 9, 10]
    cut = [(part.parameter, part.overlap.box) for part in queue.between(3, 8)]
    assert cut == [(0, Box(1, 0, 1, 3)), (1, Box(0, 0, 2, 1))]
    assert list(queue.between(0, 10)) == list(queue.items)
    assert list(queue.between(6, 6)) == []


@pytest.mark.parametrize("seed", range(50))
def test_shares_cover_every_replica_once_and_are_even_over_buckets(seed: int) -> None:
    r = random.Random(seed)
    ranks, replicas = list(range(r.randint(1, 6))), r.randint(1, 7)
    sent, columns = dict.fromkeys(ranks, 0), r.choice((1, 5))
    total = 0
    for _ in range(30):
        queue = Queue([item(r.randint(1, 9), columns) for _ in range(r.randint(1, 4))])
        shares = list(share_out(queue, replicas, ranks, sent))
        cuts = [(share.replica, share.start, share.stop) for share in shares]
        assert cuts == sorted(cuts)
        covered = [position for _, start, stop in cuts for position in range(start, stop)]
        assert covered == list(range(queue.elements)) * replicas
        total += queue.elements * replicas
    assert sum(sent.values()) == total
    assert max(sent.values()) <= Fraction(total, len(ranks)) + len(ranks) + columns
