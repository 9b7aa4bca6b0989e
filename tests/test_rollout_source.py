# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Collecting by a sampling rule, and one step ahead, with scripted answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from megacurl.collection import Collector, Rollout
from megacurl.config.errors import ConfigError
from megacurl.config.load import resolve_defaults
from megacurl.config.schema import Config
from megacurl.curriculum.sampling.registry import get_rule
from megacurl.data.cursor import PromptCursor
from megacurl.data.prompt import Prompt
from megacurl.generation import EncodedPrompt, Judged
from megacurl.rewards.verdict import Verdict
from megacurl.rollout.types import Sample
from megacurl.rollout_source import RolloutSource

QUESTIONS: list[EncodedPrompt] = [
    (Prompt(f"q{i}", ({"role": "user", "content": f"{i}?"},), str(i), "set"), [i + 1])
    for i in range(6)
]


def config(preset: str = "dapo", lag: int = 0, **training: Any) -> Config:
    plain = resolve_defaults(preset)
    sizes = {"rollout_batch_size": 3, "n_samples_per_prompt": 2, "train_iters": 4, **training}
    return dataclasses.replace(
        plain,
        training=dataclasses.replace(plain.training, **sizes),
        rollout=dataclasses.replace(plain.rollout, rollout_lag=lag),
    )


class Engine:
    """Answers by script; remembers what it was asked, in which step, and its version."""

    def __init__(self, mixed: set[str]) -> None:
        self.mixed, self.version = mixed, 0
        self.asked: list[tuple[int, list[str]]] = []

    def __call__(self, prompts: Sequence[EncodedPrompt], step: int) -> list[list[Judged]]:
        self.asked.append((step, [prompt.id for prompt, _ in prompts]))
        return [[self._answer(p.id, k) for k in (0, 1)] for p, _ in prompts]

    def _answer(self, question: str, number: int) -> Judged:
        correct = number == 0 and question in self.mixed
        sample = Sample("r", number, [7, 8], [-0.5, -0.25], "stop", self.version)
        return Judged(sample, Verdict(correct=correct, parsed=True))


def source(engine: Engine, settings: Config, notes: list[str] | None = None) -> RolloutSource:
    cursor: PromptCursor[EncodedPrompt] = PromptCursor(QUESTIONS, seed=0, shuffle=False)
    rule = get_rule(settings.sampling.sampling).build(settings)
    return RolloutSource(
        Collector(rule, cursor, QUESTIONS, settings),
        engine,
        settings,
        saves=False,
        note=(notes if notes is not None else []).append,
    )


def test_only_chosen_questions_are_trained_on_and_everything_is_kept() -> None:
    engine = Engine(mixed={"q1", "q3", "q4", "q5"})
    rollout = source(engine, config())(0)
    assert engine.asked == [(0, ["q0", "q1", "q2"]), (0, ["q3", "q4", "q5"])]
    assert rollout.chosen == ["q1", "q3", "q4"]
    assert [t.group for t in rollout.trajectories] == [0, 0, 1, 1, 2, 2]
    assert [t.prompt_id for t in rollout.everything[::2]] == ["q0", "q1", "q2", "q3", "q4", "q5"]
    assert rollout.metrics["sampling/responses"] == 12.0
    assert rollout.metrics["sampling/accuracy"] == pytest.approx(4 / 12)


def test_a_question_is_not_rolled_out_twice_in_a_step_and_too_few_are_reported() -> None:
    """The data holds six questions, ten rounds ask for thirty."""
    engine, notes = Engine(mixed={"q2"}), list[str]()
    rollout = source(engine, config(), notes)(0)
    asked = [question for _, questions in engine.asked for question in questions]
    assert sorted(asked) == ["q0", "q1", "q2", "q3", "q4", "q5"]
    assert rollout.chosen == ["q2"]
    assert notes == ["--sampling dynamic is 2 of 3 questions short: a smaller batch"]


def test_a_rollout_of_everything_has_no_metrics_of_a_rule() -> None:
    rollout = source(Engine(mixed=set()), config("cvpo"))(0)
    assert rollout.metrics == {}
    assert rollout.trajectories == rollout.everything


def test_one_step_ahead_and_through_a_checkpoint(tmp_path: Path) -> None:
    engine, settings = Engine(mixed={"q1", "q4"}), config("grpo", lag=1)
    first = source(engine, settings)
    versions = []
    for step in range(2):
        versions.append({t.version for t in first(step).trajectories})
        engine.version += 1
    assert [step for step, _ in engine.asked] == [0, 1, 2]
    state = json.loads(json.dumps(first.state_dict()))
    first.save_ahead(tmp_path)

    again = source(engine, settings)
    again.collector.cursor.load_state_dict(first.collector.cursor.state_dict())
    again.load_state_dict(state, tmp_path)
    for step in (2, 3):
        rollout = again(step)
        assert [t.reward for t in rollout.trajectories if t.correct] == [1.0]
        versions.append({t.version for t in rollout.trajectories})
        engine.version += 1
    assert versions == [{0}, {0}, {1}, {2}]
    assert [step for step, _ in engine.asked] == [0, 1, 2, 3]  # none after the last step
    assert "ahead" not in again.state_dict()
    with pytest.raises(ConfigError, match="made one step ahead; give --rollout-lag 1"):
        source(engine, config("grpo")).load_state_dict(state, tmp_path)


def test_the_state_of_another_rule_is_refused(tmp_path: Path) -> None:
    state = source(Engine(set()), config("vcrl")).state_dict()
    with pytest.raises(ConfigError, match=r"--load .*another --sampling rule wrote it"):
        source(Engine(set()), config("grpo")).load_state_dict(state, tmp_path)


def test_choosing_nothing_gives_an_empty_batch() -> None:
    rollout = source(Engine(mixed=set()), config())(0)
    assert (rollout.trajectories, rollout.chosen) == ([], [])
    assert Rollout.of(rollout.everything).chosen == [f"q{i}" for i in range(6)]
