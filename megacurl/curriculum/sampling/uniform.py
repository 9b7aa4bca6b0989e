# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The plain rule: every question once an epoch, and all of them are trained on."""

from __future__ import annotations

from collections.abc import Sequence

from megacurl.config.schema import Config
from megacurl.curriculum.sampling.registry import register_rule
from megacurl.curriculum.sampling.rule import Ask, GroupOutcome, SamplingRule


class UniformSampling(SamplingRule):
    """A batch is the next ``batch_size`` questions of the data."""

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self._batch: list[str] = []

    def begin(self, step: int) -> Ask:
        self._batch = []
        return Ask(fresh=self.batch_size)

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        self._batch += [outcome.question for outcome in outcomes]

    def more(self) -> Ask:
        return Ask()

    def finish(self) -> list[str]:
        return self._batch


@register_rule("uniform")
def build(config: Config) -> SamplingRule:
    """No settings but the batch size."""
    return UniformSampling(config.training.rollout_batch_size)
