# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The contract of a sampling rule, and what it is told about the rollouts it asked for.

A step goes ``begin``, then as long as there is something to ask ``observe`` and ``more``, then
``finish``. A rule knows questions by their ids only and is deterministic, so every rank that runs
it on the same outcomes arrives at the same batch without communication.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ask:
    """What to roll out next: so many questions from the data, and these known ones again."""

    fresh: int = 0
    again: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.fresh > 0 or bool(self.again)


@dataclass(frozen=True)
class GroupOutcome:
    """A question that was rolled out, and the verdicts of its responses.

    scores: in [0, 1], see ``Verdict``; 1 and 0 by ``correct`` where the verifier gives no grades.
    """

    question: str
    correct: tuple[bool, ...]
    scores: tuple[float, ...]

    @property
    def successes(self) -> int:
        return sum(self.correct)

    @property
    def mixed(self) -> bool:
        """Whether the responses differ in score; without grades, some right and some wrong."""
        return len(set(self.scores)) > 1


class SamplingRule(ABC):
    """Chooses the questions of a step."""

    @abstractmethod
    def begin(self, step: int) -> Ask:
        """Start zero-based ``step``; what to roll out first."""

    @abstractmethod
    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        """Take the outcomes of what was asked for last; there may be fewer than asked."""

    @abstractmethod
    def more(self) -> Ask:
        """What else to roll out in this step; an empty Ask when nothing."""

    @abstractmethod
    def finish(self) -> list[str]:
        """End the step; the questions to train on, at most the batch size, perhaps none."""

    def metrics(self) -> dict[str, float]:
        """Numbers of the finished step, names relative to ``sampling/``."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """What later steps depend on, JSON-able; taken between steps."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue exactly where :meth:`state_dict` was taken.

        Raises ValueError for the state of another rule.
        """
        if state:
            raise ValueError(
                f"{type(self).__name__} keeps no state, but the checkpoint has {sorted(state)}: "
                "another --sampling rule wrote it"
            )
