# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Who of several ranks that hold the same sends it, so that all send about as much.

A *cell* is a set of ``dp`` ranks that hold the same shards. Most elements lie in one cell. Those of
a norm lie in every tensor parallel cell of a stage, those of a tied embedding in a cell of the
first and one of the last stage; they go to whichever has less to send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from megacurl.sync.queue import Item, Queue
from megacurl.sync.trainer_layout import Cell

Demand = Mapping[tuple[Cell, ...], int]
"""Cells that hold the same elements -> how many of these one engine replica wants."""


class Share(NamedTuple):
    """Rank ``sender`` sends what lies between two cuts of ``queue`` to engine ``replica``."""

    sender: int
    replica: int
    queue: Queue
    start: int
    stop: int


def lower_bound(demand: Demand, dp: int, replicas: int) -> Fraction:
    """Elements that the busiest trainer rank sends in the best of all plans, at least.

    Engines pass nothing on, so what ``replicas`` of them want leaves the trainer that many times.
    Elements that lie in a set of cells and nowhere else leave it through the ranks of these cells:
    on average each sends their number / (cells x dp), and the busiest no less. The bound is the
    largest such average over these sets of cells: those with the same elements, whole stages, the
    two stages of a tied embedding, and all.
    """
    cells = {cell for holders in demand for cell in holders}
    stages: dict[int, set[Cell]] = {}
    for cell in cells:
        stages.setdefault(cell[0], set()).add(cell)
    ends = stages[min(stages)] | stages[max(stages)]
    sets = [set(holders) for holders in demand] + [*stages.values(), ends, cells]
    return max(
        Fraction(sum(n for holders, n in demand.items() if within.issuperset(holders)), len(within))
        for within in sets
    ) * Fraction(replicas, dp)


def cell_quotas(demand: Demand) -> dict[tuple[Cell, ...], dict[Cell, int]]:
    """How many of the elements that several cells hold each of these cells sends."""
    loads = {cell: demand.get((cell,), 0) for holders in demand for cell in holders}
    quotas = {}
    for holders in sorted(demand, key=lambda cells: (len(cells), cells)):
        if len(holders) > 1:
            quotas[holders] = fill_up({cell: loads[cell] for cell in holders}, demand[holders])
            for cell, quota in quotas[holders].items():
                loads[cell] += quota
    return quotas


def fill_up(loads: Mapping[Cell, int], amount: int) -> dict[Cell, int]:
    """Deal ``amount`` out so that the largest sum of load and share is as small as can be."""
    ordered = sorted(loads, key=lambda cell: (loads[cell], cell))
    level, count = 0, 0
    for count in range(1, len(ordered) + 1):
        level = (amount + sum(loads[cell] for cell in ordered[:count])) // count
        if count == len(ordered) or level <= loads[ordered[count]]:
            break
    shares = {cell: level - loads[cell] for cell in ordered[:count]}
    shares[ordered[0]] += amount - sum(shares.values())
    return {cell: shares.get(cell, 0) for cell in loads}


class CellChooser:
    """Deals the items that several cells hold out to them by their quotas, in the items' order."""

    def __init__(self, demand: Demand) -> None:
        self._left = {
            holders: deque(quotas.items()) for holders, quotas in cell_quotas(demand).items()
        }

    def choose(self, holders: tuple[Cell, ...], item: Item) -> Iterator[tuple[Cell, Item]]:
        """The cell that sends the item; several with parts of it where a quota ends inside."""
        if len(holders) == 1:
            yield holders[0], item
            return
        left, queue, position = self._left[holders], Queue([item]), 0
        while position < queue.elements:
            cell, quota = left.popleft()
            stop = queue.snap(position + max(quota, 0)) if left else queue.elements
            if stop > position:
                yield from ((cell, part) for part in queue.between(position, stop))
            if stop == queue.elements:
                left.appendleft((cell, quota - (stop - position)))
            position = stop


def share_out(
    queue: Queue, replicas: int, ranks: Sequence[int], sent: dict[int, int]
) -> Iterator[Share]:
    """Deal what all replicas want of a cell out to its ranks, to each a run of it.

    A rank whose share was rounded up gets less of the next queue. Replicas that are a multiple of
    the ranks are served whole, each by one rank.

    Args:
        queue: what one replica wants of the cell.
        replicas: number of them.
        ranks: the ranks of the cell.
        sent: rank -> elements that it sends; counted on here.
    """
    wanted = queue.elements * replicas
    target = (wanted + sum(sent[rank] for rank in ranks)) // len(ranks)
    ideal = position = 0
    for rank in ranks:
        ideal = min(ideal + max(target - sent[rank], 0), wanted)
        replica, within = divmod(wanted if rank == ranks[-1] else ideal, queue.elements)
        end = replica * queue.elements + queue.snap(within)
        sent[rank] += end - position
        yield from _runs(queue, rank, position, end)
        position = end


def _runs(queue: Queue, rank: int, position: int, end: int) -> Iterator[Share]:
    while position < end:
        replica, start = divmod(position, queue.elements)
        stop = min(queue.elements, start + end - position)
        yield Share(rank, replica, queue, start, stop)
        position += stop - start


def count_by_holders(
    wanted: Iterable[tuple[tuple[Cell, ...], Item]],
) -> dict[tuple[Cell, ...], int]:
    """The demand of some items."""
    demand: dict[tuple[Cell, ...], int] = {}
    for holders, item in wanted:
        demand[holders] = demand.get(holders, 0) + item.elements
    return demand
