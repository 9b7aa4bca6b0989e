# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A step's rollout as its sampling rule wants it: ask, roll out, judge, ask for more, choose."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from megacurl.config.schema import Config
from megacurl.curriculum.sampling.rule import Ask, GroupOutcome, SamplingRule
from megacurl.data.cursor import PromptCursor
from megacurl.generation import EncodedPrompt, Judged, to_trajectories
from megacurl.trajectory import Trajectory

RollOut = Callable[[Sequence[EncodedPrompt]], list[list[Judged]]]
"""Judged responses to each question, in order, on every rank; collective."""


@dataclass(frozen=True)
class Rollout:
    """What a step has sampled.

    trajectories: to train on; empty if the rule found nothing worth it.
    everything: all that was sampled, those among them: what the curriculum learns from.
    metrics: of the sampling rule.
    """

    trajectories: list[Trajectory]
    everything: list[Trajectory]
    metrics: dict[str, float]

    @classmethod
    def of(cls, trajectories: list[Trajectory]) -> Rollout:
        """All of it is trained on."""
        return cls(trajectories, trajectories, {})

    @classmethod
    def choose(
        cls, everything: list[Trajectory], chosen: Sequence[str], metrics: dict[str, float]
    ) -> Rollout:
        """Train on the questions ``chosen``, numbered in that order."""
        responses: dict[str, list[Trajectory]] = {}
        for trajectory in everything:
            responses.setdefault(trajectory.prompt_id, []).append(trajectory)
        trajectories = [
            dataclasses.replace(t, group=group)
            for group, question in enumerate(chosen)
            for t in responses[question]
        ]
        return cls(trajectories, everything, metrics)

    @property
    def chosen(self) -> list[str]:
        """The questions that are trained on, in order."""
        return list(dict.fromkeys(t.prompt_id for t in self.trajectories))


class Collector:
    """Fills a step's batch by the sampling rule; every rank does the same."""

    def __init__(
        self,
        rule: SamplingRule,
        cursor: PromptCursor[EncodedPrompt],
        prompts: Iterable[EncodedPrompt],
        config: Config,
    ) -> None:
        """
        Args:
            rule: chooses.
            cursor: deals out fresh questions.
            prompts: all questions, for those that are asked again.
            config: the run's settings.
        """
        self.rule, self.cursor, self.config = rule, cursor, config
        self._by_id = {prompt.id: (prompt, ids) for prompt, ids in prompts}

    def __call__(self, step: int, roll_out: RollOut) -> Rollout:
        """The rollout of zero-based ``step``; collective."""
        found: dict[str, tuple[EncodedPrompt, list[Judged]]] = {}
        ask = self.rule.begin(step)
        while ask:
            prompts = [p for p in self._prompts(ask) if p[0].id not in found]
            responses = roll_out(prompts) if prompts else []
            rolled = {p[0].id: (p, row) for p, row in zip(prompts, responses, strict=True)}
            self.rule.observe([_outcome(question, row) for question, (_, row) in rolled.items()])
            found |= rolled
            ask = self.rule.more()
        chosen = self.rule.finish()
        pairs = list(found.values())
        everything = to_trajectories([p for p, _ in pairs], [row for _, row in pairs], self.config)
        return Rollout.choose(everything, chosen, self._metrics(everything))

    def _prompts(self, ask: Ask) -> list[EncodedPrompt]:
        fresh = self.cursor.next(min(ask.fresh, len(self.cursor))) if ask.fresh else []
        return [*fresh, *(self._by_id[question] for question in ask.again)]

    def _metrics(self, everything: Sequence[Trajectory]) -> dict[str, float]:
        of_rule = {f"sampling/{name}": value for name, value in self.rule.metrics().items()}
        if not of_rule:
            return {}
        accuracy = sum(t.correct for t in everything) / max(len(everything), 1)
        return {
            **of_rule,
            "sampling/responses": float(len(everything)),
            "sampling/accuracy": accuracy,
        }


def _outcome(question: str, responses: Sequence[Judged]) -> GroupOutcome:
    verdicts = [judged.verdict for judged in responses]
    return GroupOutcome(
        question, tuple(v.correct for v in verdicts), tuple(v.score for v in verdicts)
    )
