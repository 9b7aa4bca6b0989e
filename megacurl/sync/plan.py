# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The weight plan: which slices of its shards each trainer rank sends to each engine rank.

Pure arithmetic over names and sizes: no process group, no weights. The trainer's side comes from
its weight map and layout, the engine's from ``engine_layout``; both are cut into boxes of the HF
tensors, and what overlaps is sent. No rank ever holds a whole tensor that it does not own.

* Every element of an engine rank's shard is written exactly once. The padding of its vocabulary is
  not written: engines clear it.
* Parameters travel in the model's order, layer by layer, in buckets; a bucket holds whole
  parameters of the engine, so fused ones are complete.
* In every bucket the ranks that hold the same share the work (``balance``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from megacurl.models.weight_map import Cut, Parameter, Shape
from megacurl.sync.balance import (
    CellChooser,
    Demand,
    Share,
    count_by_holders,
    lower_bound,
    share_out,
)
from megacurl.sync.boxes import Box, Overlap, overlaps, shard_blocks
from megacurl.sync.buckets import cut_into_buckets
from megacurl.sync.engine_layout import EngineLayout, EngineParameter, engine_parameters
from megacurl.sync.queue import Item, Queue
from megacurl.sync.trainer_layout import Cell, TrainerLayout


class Transfer(NamedTuple):
    """One box from one trainer rank to one rank of one engine.

    tensor, box: the part of which HF tensor it is.
    source, source_at: Megatron parameter (layers numbered over the whole model) and the row and
        column of the box's corner in the sender's shard of it.
    targets, target_at: engine parameters that take it, and the corner's place in their shards.
    """

    bucket: int
    sender: int
    replica: int
    engine_rank: int
    tensor: str
    box: Box
    source: str
    source_at: tuple[int, int]
    targets: tuple[str, ...]
    target_at: tuple[int, int]


@dataclass(frozen=True)
class PlannedBucket:
    """Parameters by number, and who sends what of them."""

    parameters: tuple[int, ...]
    shares: tuple[Share, ...]


@dataclass(frozen=True)
class SyncPlan:
    """The plan of every sync of a run; sizes are in elements."""

    parameters: tuple[Parameter, ...]
    trainer: TrainerLayout
    engine: EngineLayout
    buckets: tuple[PlannedBucket, ...]
    demand: Demand = field(repr=False)

    def transfers(
        self,
        *,
        sender: int | None = None,
        replica: int | None = None,
        bucket: int | None = None,
    ) -> Iterator[Transfer]:
        """All transfers, or those of one trainer rank, one engine or one bucket, in its order."""
        for number in range(len(self.buckets)) if bucket is None else (bucket,):
            for share in self.buckets[number].shares:
                if sender in (None, share.sender) and replica in (None, share.replica):
                    yield from self._expand(number, share)

    def _expand(self, bucket: int, share: Share) -> Iterator[Transfer]:
        for item in share.queue.between(share.start, share.stop):
            parameter, overlap = self.parameters[item.parameter], item.overlap
            yield Transfer(
                bucket,
                share.sender,
                share.replica,
                item.engine_rank,
                parameter.hf[overlap.source],
                overlap.box,
                parameter.megatron,
                overlap.held_at,
                self.targets[item.parameter][item.target].names,
                overlap.wanted_at,
            )

    @cached_property
    def targets(self) -> list[list[EngineParameter]]:
        """The engine's parameters, by number of the trainer's."""
        return [engine_parameters(parameter, self.engine) for parameter in self.parameters]

    @cached_property
    def sent(self) -> dict[int, int]:
        """Trainer rank -> elements that it sends."""
        sent = dict.fromkeys(range(self.trainer.world_size), 0)
        for bucket in self.buckets:
            for share in bucket.shares:
                sent[share.sender] += share.stop - share.start
        return sent

    @cached_property
    def received(self) -> list[int]:
        """Elements that rank 0, 1, ... of every engine receives."""
        received: Counter[int] = Counter()
        queues = {id(s.queue): s.queue for bucket in self.buckets for s in bucket.shares}
        for queue in queues.values():
            for item in queue.items:
                received[item.engine_rank] += item.elements
        return [received[rank] for rank in range(self.engine.tp)]

    @property
    def shards(self) -> list[int]:
        """Elements that rank 0, 1, ... of every engine must receive: its shards, unpadded."""
        return [
            sum(
                block.box.elements
                for parameter, targets in zip(self.parameters, self.targets, strict=True)
                for target in targets
                for block in shard_blocks(target.placement, parameter.shapes, rank, self.engine.tp)
            )
            for rank in range(self.engine.tp)
        ]

    @property
    def least_possible(self) -> Fraction:
        """Elements that the busiest rank of any plan sends, see ``balance.lower_bound``."""
        return lower_bound(self.demand, self.trainer.dp, self.engine.replicas)

    def count(self) -> tuple[int, int]:
        """(messages, slices): pairs of ranks that talk in a bucket, and the boxes in them."""
        # A trainer rank is in one cell, so it has one share of a bucket for an engine.
        counted: dict[tuple[int, int, int], tuple[int, int]] = {}
        messages = slices = 0
        for bucket in self.buckets:
            for _, _, queue, start, stop in bucket.shares:
                key = id(queue), start, stop
                if key not in counted:
                    ranks = [item.engine_rank for item in queue.between(start, stop)]
                    counted[key] = len(set(ranks)), len(ranks)
                messages += counted[key][0]
                slices += counted[key][1]
        return messages, slices


def plan_sync(
    parameters: Sequence[Parameter],
    trainer: TrainerLayout,
    engine: EngineLayout,
    *,
    bucket_elements: int,
) -> SyncPlan:
    """Plan the way of a whole model.

    Args:
        parameters: of the whole model, in order (``WeightMap.parameters``).
        trainer: the trainer's ranks; its sizes were checked by ``config.layout``.
        engine: the engines, all of one layout; checked by ``engine_problems``.
        bucket_elements: largest part of a bucket that a rank of an engine receives; a larger
            parameter travels alone.
    """
    planner = _Planner(trainer, engine)
    wanted = [planner.wanted(number, p) for number, p in enumerate(parameters)]
    demand = count_by_holders(pair for pairs in wanted for pair in pairs)
    chooser, sent = CellChooser(demand), dict.fromkeys(range(trainer.world_size), 0)
    buckets = []
    sizes = [_largest_shard(pairs) for pairs in wanted]
    for numbers in cut_into_buckets(range(len(parameters)), sizes.__getitem__, bucket_elements):
        by_cell: dict[Cell, list[Item]] = {}
        for number in numbers:
            for holders, item in wanted[number]:
                for cell, part in chooser.choose(holders, item):
                    by_cell.setdefault(cell, []).append(part)
        shares = [
            share
            for cell, items in sorted(by_cell.items())
            for share in share_out(Queue(items), engine.replicas, trainer.cell_ranks(cell), sent)
        ]
        buckets.append(PlannedBucket(numbers, tuple(shares)))
    return SyncPlan(tuple(parameters), trainer, engine, tuple(buckets), demand)


Wanted = list[tuple[tuple[Cell, ...], Item]]
"""Items of a parameter, each with the cells that hold it."""


class _Planner:
    """Intersects shards once for every kind of parameter: layers repeat."""

    def __init__(self, trainer: TrainerLayout, engine: EngineLayout) -> None:
        self.trainer, self.engine = trainer, engine
        self._known: dict[tuple[Cut, tuple[Shape, ...]], list[_Found]] = {}

    def wanted(self, number: int, parameter: Parameter) -> Wanted:
        """What the ranks of one engine want of parameter ``number``."""
        kind = parameter.cut, parameter.shapes
        if kind not in self._known:
            self._known[kind] = list(self._intersect(parameter))
        stages = self.trainer.stages(parameter)
        return [
            (
                tuple((stage, tp_rank) for stage in stages for tp_rank in found.holders),
                Item(number, found.target, found.engine_rank, found.overlap),
            )
            for found in self._known[kind]
        ]

    def _intersect(self, parameter: Parameter) -> Iterator[_Found]:
        tp, cut, shapes = self.trainer.tp, parameter.cut, parameter.shapes
        if cut.partition_dim is None:
            held = [(tuple(range(tp)), shard_blocks(cut, shapes, 0, tp))]
        else:
            held = [((rank,), shard_blocks(cut, shapes, rank, tp)) for rank in range(tp)]
        for target, wants in enumerate(engine_parameters(parameter, self.engine)):
            for rank in range(self.engine.tp):
                blocks = shard_blocks(wants.placement, shapes, rank, self.engine.tp)
                for holders, have in held:
                    for overlap in overlaps(have, blocks):
                        yield _Found(holders, target, rank, overlap)


class _Found(NamedTuple):
    """An overlap with tensor parallel ranks of the trainer that hold it and who wants it."""

    holders: tuple[int, ...]
    target: int
    engine_rank: int
    overlap: Overlap


def _largest_shard(wanted: Wanted) -> int:
    """Elements of a parameter on the engine rank that holds most of it."""
    sizes: Counter[int] = Counter()
    for _, item in wanted:
        sizes[item.engine_rank] += item.elements
    return max(sizes.values())
