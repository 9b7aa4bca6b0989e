# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which samples enter the batch, and when."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from megacurl.rollout.types import Request

_REFILL_SHARE = 8  # refill when 1/8 of the rows are free: prefills stay few and well filled


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Size of a decode batch.

    Args:
        max_rows: samples decoded at once.
        max_tokens: rows x the longest final length among them, at most; bounds the KV cache.
        max_prefill_tokens: padded tokens of one prefill forward (a longer prompt goes alone).
    """

    max_rows: int
    max_tokens: int
    max_prefill_tokens: int

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_tokens", "max_prefill_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, not {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Unit:
    """Samples [first, last) of a request, which share one prefill."""

    request: Request
    first: int
    last: int

    @property
    def size(self) -> int:
        """Rows it takes."""
        return self.last - self.first

    @property
    def context(self) -> tuple[int, ...]:
        """Tokens that are there before the first new one."""
        return self.request.prompt_ids + self.request.prefix_ids

    @property
    def final_length(self) -> int:
        """Tokens of its longest possible sequence."""
        return final_length(self.request)


def final_length(request: Request) -> int:
    """Prompt plus all tokens that may be generated."""
    return len(request.prompt_ids) + request.sampling.max_tokens


class AdmissionQueue:
    """Waiting samples, longest possible sequence first.

    Long sequences first keeps the tail of the call short, and neighbours of similar length waste
    little padding. The samples of a request enter together, so that its prompt is read once.
    """

    def __init__(self, requests: Sequence[Request], limits: BatchLimits) -> None:
        self._limits = limits
        ordered = sorted(
            requests,
            key=lambda request: (
                final_length(request),
                len(request.prompt_ids) + len(request.prefix_ids),
            ),
            reverse=True,
        )
        self._waiting = deque(Unit(request, 0, request.num_samples) for request in ordered)

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, active: int, longest: int) -> list[Unit]:
        """Take what fits beside ``active`` rows whose longest final length is ``longest``."""
        free = self._limits.max_rows - active
        if not self._waiting or (active and free * _REFILL_SHARE < self._limits.max_rows):
            return []
        admitted: list[Unit] = []
        while self._waiting:
            unit = self._waiting[0]
            longest = max(longest, unit.final_length)
            room = min(self._limits.max_rows, self._limits.max_tokens // longest) - active
            if unit.size <= room:
                self._waiting.popleft()
            elif active == 0 and room > 0:
                # Larger than an empty batch: the rest needs a prefill of its own.
                unit, rest = (
                    Unit(unit.request, unit.first, unit.first + room),
                    Unit(unit.request, unit.first + room, unit.last),
                )
                self._waiting[0] = rest
            else:
                break
            admitted.append(unit)
            active += unit.size
        return admitted

    def prefill_groups(self, units: Sequence[Unit]) -> list[list[Unit]]:
        """Cut admitted units into prefill forwards of at most ``max_prefill_tokens``."""
        groups: list[list[Unit]] = []
        width = 0
        for unit in sorted(units, key=lambda unit: len(unit.context), reverse=True):
            if groups and width * (len(groups[-1]) + 1) <= self._limits.max_prefill_tokens:
                groups[-1].append(unit)
            else:
                groups.append([unit])
                width = len(unit.context)
        return groups
