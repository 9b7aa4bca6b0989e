# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VCRL's memory of questions worth asking again: a priority queue with momentum.

The paper's update of a priority (Eq. 11) names a term beta that no text we know defines. Here it is
the question's new variance, or the steps since it was last used (docs/algorithms.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Beta = Literal["variance", "staleness"]


@dataclass
class BankEntry:
    """priority: of being asked again. replays: times it was. last_step: when it was last used."""

    priority: float
    replays: int
    last_step: int


class ReplayBank:
    """Questions by id with their priorities; deterministic, so ranks agree without talking.

    A question enters with its variance as priority. Each time it is used again the priority P
    becomes momentum P + (1 - momentum) beta. After ``max_replays`` replays it leaves.
    """

    def __init__(
        self,
        *,
        momentum: float = 0.9,
        max_replays: int = 2,
        beta: Beta = "variance",
        capacity: int | None = None,
    ) -> None:
        """
        Args:
            momentum: weight of the old priority, in [0, 1].
            max_replays: replays after which a question leaves, at least 1.
            beta: what moves a priority: the new variance, or the steps since the last use.
            capacity: questions kept; above it the lowest priority leaves. None: no limit.
        """
        if not 0 <= momentum <= 1 or max_replays < 1 or (capacity is not None and capacity < 1):
            raise ValueError(
                f"momentum={momentum}, max_replays={max_replays}, capacity={capacity}; use "
                "0 to 1, at least 1, and None or at least 1"
            )
        if beta not in ("variance", "staleness"):
            raise ValueError(f"beta is {beta!r}; use 'variance' or 'staleness'")
        self.momentum, self.max_replays = momentum, max_replays
        self.beta, self.capacity = beta, capacity
        self.entries: dict[str, BankEntry] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def take(self, count: int, *, exclude: Collection[str] = ()) -> list[str]:
        """Return up to ``count`` questions by falling priority, ties oldest first.

        They stay in the bank; :meth:`replayed` accounts for them.

        Args:
            count: at most this many.
            exclude: questions that must not be taken (those of the step's fresh batch).
        """
        allowed = [q for q in self.entries if q not in exclude]
        # Sorting is stable and the dict is in order of entry.
        ranked = sorted(allowed, key=lambda q: -self.entries[q].priority)
        return ranked[: max(count, 0)]

    def replayed(self, question: str, variance: float, step: int) -> None:
        """Account for a replay that gave ``variance``; the last one takes the question out."""
        entry = self.entries[question]
        self._move(entry, variance, step)
        entry.replays += 1
        if entry.replays >= self.max_replays:
            del self.entries[question]

    def keep(self, question: str, variance: float, step: int) -> None:
        """Put a fresh question in; one that is there already gets a new priority only."""
        if question in self.entries:
            self._move(self.entries[question], variance, step)
        else:
            self.entries[question] = BankEntry(variance, 0, step)
        if self.capacity is not None and len(self.entries) > self.capacity:
            # Of equal priorities the newest leaves: the older one would be asked first.
            newest_first = reversed(self.entries)
            del self.entries[min(newest_first, key=lambda q: self.entries[q].priority)]

    def _move(self, entry: BankEntry, variance: float, step: int) -> None:
        beta = variance if self.beta == "variance" else float(step - entry.last_step)
        entry.priority = self.momentum * entry.priority + (1 - self.momentum) * beta
        entry.last_step = step

    def state_dict(self) -> dict[str, Any]:
        """Return the entries in their order, JSON-able."""
        return {"entries": [[question, asdict(e)] for question, e in self.entries.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue exactly where :meth:`state_dict` was taken."""
        self.entries = {question: BankEntry(**entry) for question, entry in state["entries"]}

    def metrics(self) -> dict[str, float]:
        """Return size and mean priority."""
        priorities = [entry.priority for entry in self.entries.values()]
        return {
            "size": float(len(priorities)),
            "priority": sum(priorities) / len(priorities) if priorities else 0.0,
        }
