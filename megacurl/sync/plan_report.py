# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A weight plan as text: bytes, messages and buckets, as short for 512 ranks as for 4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from megacurl.config.layout_format import format_ranks, format_size, format_table
from megacurl.sync.plan import SyncPlan


def format_plan(plan: SyncPlan, itemsize: int, bucket_mb: int) -> str:
    """Who sends and receives how much, next to the least that any plan can do.

    itemsize: bytes of an element on its way.
    """
    blocks = [_title(plan, itemsize), _sent(plan, itemsize), _received(plan, itemsize)]
    blocks.append(_messages(plan, itemsize, bucket_mb))
    return "\n\n".join("\n".join(block) for block in blocks)


def _title(plan: SyncPlan, itemsize: int) -> Iterator[str]:
    trainer, engine = plan.trainer, plan.engine
    elements = sum(math.prod(shape) for p in plan.parameters for shape in p.shapes)
    yield f"Weights: {elements:,} parameters, {format_size(elements * itemsize)}"
    yield (
        f"  from {trainer.world_size} trainer ranks = tensor {trainer.tp} x data {trainer.dp} x "
        f"pipeline {trainer.pp}" + f" ({trainer.chunks} chunks)" * (trainer.chunks > 1)
    )
    yield f"  to {engine.ranks} engine ranks = {engine.replicas} engines x tensor {engine.tp}"


def _sent(plan: SyncPlan, itemsize: int) -> Iterator[str]:
    trainer, rows = plan.trainer, []
    width = trainer.tp * trainer.dp
    for stage in range(trainer.pp):
        ranks = range(stage * width, (stage + 1) * width)
        rows.append((f"  {stage}", format_ranks(ranks), *_spread(plan, ranks, itemsize)))
    yield "Sent by a trainer rank"
    yield from format_table(("  stage", "ranks", "least", "mean", "most"), rows)
    most, bound = max(plan.sent.values()), plan.least_possible
    yield (
        f"  busiest rank {format_size(most * itemsize)}, lower bound "
        f"{format_size(float(bound) * itemsize)}, ratio {float(most / bound):.3f}"
    )


def _spread(plan: SyncPlan, ranks: range, itemsize: int) -> tuple[str, str, str]:
    sent = [plan.sent[rank] for rank in ranks]
    values = min(sent), sum(sent) / len(sent), max(sent)
    least, mean, most = (format_size(value * itemsize) for value in values)
    return least, mean, most


def _received(plan: SyncPlan, itemsize: int) -> Iterator[str]:
    rows = []
    sizes = list(zip(plan.received, plan.shards, strict=True))
    for (received, shard), alike in groupby(range(len(sizes)), sizes.__getitem__):
        cells = format_size(received * itemsize), format_size(shard * itemsize)
        rows.append((f"  {format_ranks(list(alike))}", *cells, f"{received / shard:.3f}"))
    yield "Received by the ranks of an engine"
    yield from format_table(("  ranks", "received", "their shards (lower bound)", "ratio"), rows)


def _messages(plan: SyncPlan, itemsize: int, bucket_mb: int) -> Iterator[str]:
    messages, slices = plan.count()
    mean = format_size(sum(plan.sent.values()) * itemsize / messages)
    yield f"Buckets: {len(plan.buckets)}, at most {bucket_mb} MiB an engine rank or one tensor"
    yield (
        f"  {messages:,} messages (a pair of ranks in a bucket) of {mean} on average, with "
        f"{slices:,} slices"
    )
