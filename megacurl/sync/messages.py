# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The plan as messages, and the one announcement a sync from which an engine reads them all.

A message is what one trainer rank sends to one engine rank of a bucket: its slices behind one
another, row by row, with nothing between or before them. The announcement says what is in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from megacurl.sync.plan import SyncPlan, Transfer


class Message(NamedTuple):
    """What ``sender`` sends to a rank of an engine in a bucket; in this order."""

    bucket: int
    sender: int
    replica: int
    engine_rank: int
    transfers: tuple[Transfer, ...]


class Slice(NamedTuple):
    """A box of the engine's parameters ``names``, all of which take the same."""

    names: tuple[str, ...]
    row: int
    column: int
    rows: int
    columns: int


class Incoming(NamedTuple):
    """A message as its receiver knows it."""

    bucket: int
    sender: int
    slices: tuple[Slice, ...]

    @property
    def elements(self) -> int:
        return sum(part.rows * part.columns for part in self.slices)


def messages(
    plan: SyncPlan, *, sender: int | None = None, replica: int | None = None
) -> Iterator[Message]:
    """All messages, or those of one trainer rank or one engine, bucket after bucket."""
    for number in range(len(plan.buckets)):
        grouped: dict[tuple[int, int, int], list[Transfer]] = {}
        for t in plan.transfers(sender=sender, replica=replica, bucket=number):
            grouped.setdefault((t.sender, t.replica, t.engine_rank), []).append(t)
        for pair, transfers in sorted(grouped.items()):
            yield Message(number, *pair, tuple(transfers))


def announce(plan: SyncPlan, replica: int, *, version: int, dtype: str) -> dict[str, Any]:
    """What engine ``replica`` is told once before a sync; goes through JSON unchanged.

    Args:
        plan: the plan.
        replica: number of the engine.
        version: that the weights will have.
        dtype: of the elements in the messages, "bfloat16".
    """
    ranks: list[list[Any]] = [[] for _ in range(plan.engine.tp)]
    for message in messages(plan, replica=replica):
        slices = [
            [list(t.targets), *t.target_at, t.box.rows, t.box.columns] for t in message.transfers
        ]
        ranks[message.engine_rank].append([message.bucket, message.sender, slices])
    return {"version": version, "dtype": dtype, "buckets": len(plan.buckets), "ranks": ranks}


def incoming(announcement: Mapping[str, Any], engine_rank: int) -> list[Incoming]:
    """The messages that a rank of the engine will get, in the order of the buckets."""
    return [
        Incoming(
            bucket,
            sender,
            tuple(Slice(tuple(names), *place) for names, *place in slices),
        )
        for bucket, sender, slices in announcement["ranks"][engine_rank]
    ]
