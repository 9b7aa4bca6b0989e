# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The plan of a step: which rank trains which response, in which mini-batch and micro-batch.

Made once, from lengths that every rank knows, so every rank arrives at the same plan without
communication. What holds for a plan (each line is a test):

* every response occurs exactly once;
* mini-batches are of equal size, or differ by one response where they cannot be;
* a mini-batch has the same responses under every data parallel size;
* inside a mini-batch every rank has the same number of micro-batches, so no rank waits forever,
  and it is a multiple of ``count_multiple``;
* no micro-batch exceeds ``max_tokens`` unless it is a single response longer than that;
* the ranks' token sums differ by at most the longest response.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

MicroBatch = tuple[int, ...]
"""Indices of responses packed together; empty where a rank only keeps the others company."""


@dataclass(frozen=True)
class MicroBatchPlan:
    """``mini_batches[m][d]`` are the micro-batches of data parallel rank d in mini-batch m."""

    mini_batches: tuple[tuple[tuple[MicroBatch, ...], ...], ...]

    def of_rank(self, dp_rank: int) -> list[tuple[MicroBatch, ...]]:
        """This rank's micro-batches, mini-batch by mini-batch."""
        return [mini_batch[dp_rank] for mini_batch in self.mini_batches]

    def order_of_rank(self, dp_rank: int) -> list[int]:
        """The responses this rank owns, in the order in which its tokens are packed."""
        return [i for mini in self.of_rank(dp_rank) for micro in mini for i in micro]


def plan_micro_batches(
    lengths: Sequence[int],
    *,
    order: Sequence[int],
    mini_batches: int,
    dp_size: int,
    max_tokens: int,
    count_multiple: int = 1,
) -> MicroBatchPlan:
    """Cut ``order`` into mini-batches, deal each to the ranks, and pack the ranks' shares.

    Args:
        lengths: tokens of every response with its prompt.
        order: a permutation of the responses; consecutive ones form a mini-batch.
        mini_batches: how many; one that there is no response left for is empty.
        dp_size: data parallel ranks.
        max_tokens: tokens of a micro-batch.
        count_multiple: an interleaved pipeline of P stages wants multiples of P micro-batches.
    """
    bounds = [number * len(order) // mini_batches for number in range(mini_batches + 1)]
    plan = []
    for start, end in itertools.pairwise(bounds):
        shares = _deal(order[start:end], lengths, dp_size)
        packed = [_pack(share, lengths, max_tokens) for share in shares]
        count = max(len(micros) for micros in packed)
        count += -count % count_multiple
        plan.append(tuple(_split_to(micros, count, lengths) for micros in packed))
    return MicroBatchPlan(tuple(plan))


def _deal(items: Sequence[int], lengths: Sequence[int], ranks: int) -> list[list[int]]:
    """Longest first to the rank with the fewest tokens so far."""
    shares: list[list[int]] = [[] for _ in range(ranks)]
    loads = [0] * ranks
    for item in sorted(items, key=lambda i: (-lengths[i], i)):
        lightest = min(range(ranks), key=lambda r: (loads[r], r))
        shares[lightest].append(item)
        loads[lightest] += lengths[item]
    return shares


def _pack(items: Sequence[int], lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """First fit of ``items``, which come longest first."""
    bins: list[list[int]] = []
    room: list[int] = []
    for item in items:
        for b, free in enumerate(room):
            if lengths[item] <= free:
                bins[b].append(item)
                room[b] -= lengths[item]
                break
        else:
            bins.append([item])
            room.append(max_tokens - lengths[item])
    return bins


def _split_to(bins: list[list[int]], count: int, lengths: Sequence[int]) -> tuple[MicroBatch, ...]:
    """Split the heaviest bins until there are ``count``; add empty ones if that is not possible."""
    bins = [list(b) for b in bins]
    while len(bins) < count:
        divisible = [b for b in bins if len(b) > 1]
        if not divisible:
            bins.append([])
            continue
        heaviest = max(divisible, key=lambda b: sum(lengths[i] for i in b))
        bins.append(heaviest[1::2])
        heaviest[:] = heaviest[0::2]
    return tuple(tuple(b) for b in bins)
