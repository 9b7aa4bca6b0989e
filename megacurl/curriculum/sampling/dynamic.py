# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""DAPO's dynamic sampling: fill the batch with questions answered neither always nor never.

A group with equal rewards has advantage 0 everywhere; leaving it out keeps the batch full of
questions that teach something. The test is on the verdicts' scores, never on the shaped reward.
"""

from __future__ import annotations

from collections.abc import Sequence

from megacurl.config.schema import Config
from megacurl.curriculum.sampling.registry import register_rule
from megacurl.curriculum.sampling.rule import Ask, GroupOutcome, SamplingRule


class DynamicSampling(SamplingRule):
    """Samples batch after batch until enough mixed groups are found, or the rounds are used up.

    What is found after the last round is the batch, however small: the run goes on, and
    ``sampling/shortfall`` says how much was missing.
    """

    def __init__(self, batch_size: int, *, max_rounds: int = 10) -> None:
        """
        Args:
            batch_size: questions to train on.
            max_rounds: rollouts of ``batch_size`` questions that a step may take, at least 1.
        """
        if max_rounds < 1:
            raise ValueError(f"max_rounds is {max_rounds}; it must be at least 1")
        self.batch_size, self.max_rounds = batch_size, max_rounds
        self._chosen: list[str] = []
        self._seen = self._rounds = 0

    def begin(self, step: int) -> Ask:
        self._chosen, self._seen, self._rounds = [], 0, 1
        return Ask(fresh=self.batch_size)

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        self._chosen += [outcome.question for outcome in outcomes if outcome.mixed]
        self._seen += len(outcomes)

    def more(self) -> Ask:
        if len(self._chosen) >= self.batch_size or self._rounds >= self.max_rounds:
            return Ask()
        self._rounds += 1
        return Ask(fresh=self.batch_size)

    def finish(self) -> list[str]:
        return self._chosen[: self.batch_size]

    def metrics(self) -> dict[str, float]:
        return {
            "rounds": float(self._rounds),
            "kept": len(self._chosen) / max(self._seen, 1),
            "shortfall": float(max(self.batch_size - len(self._chosen), 0)),
        }


@register_rule("dynamic", needs_groups=True)
def build(config: Config) -> SamplingRule:
    """With ``dynamic_max_rounds``."""
    return DynamicSampling(
        config.training.rollout_batch_size, max_rounds=config.sampling.dynamic_max_rounds
    )
