# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Scores of the present policy on the run's benchmark files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from megacurl.config.errors import about
from megacurl.config.schema import Config
from megacurl.evaluation.question_set import encode_question_set, read_question_sets
from megacurl.evaluation.result import EvalResult
from megacurl.generation import EncodedPrompt, Generator, ShowProgress
from megacurl.rollout.types import SamplingSpec

EVAL_STREAM = -1
"""Step of evaluation seeds, in a run and in ``megacurl eval``: every evaluation draws the same
random numbers, so that two of them differ by the weights alone."""


class Evaluator:
    """The benchmark sets of a run, tokenised once."""

    def __init__(self, config: Config, tokenizer: Any) -> None:
        self.config = config
        self.sets: dict[str, list[EncodedPrompt]] = {}
        specs, instruction = config.eval.eval_prompt_data, config.data.instruction
        self.questions = read_question_sets(specs, "--eval-prompt-data", instruction)
        for one in self.questions:
            with about("--hf-checkpoint"):
                self.sets[one.spec.name] = encode_question_set(
                    one,
                    tokenizer,
                    apply_chat_template=config.data.apply_chat_template,
                    max_prompt_len=config.rollout.rollout_max_prompt_len,
                    flag="--rollout-max-prompt-len",
                )

    def due(self, step: int) -> bool:
        """Whether the policy is evaluated after ``step`` steps (0: before training)."""
        settings = self.config.eval
        if not self.sets:
            return False
        if step == 0:
            return not settings.skip_eval_before_train
        if step == self.config.training.train_iters:
            return True
        return settings.eval_interval is not None and step % settings.eval_interval == 0

    def __call__(
        self,
        generator: Generator,
        *,
        step: int,
        version: int,
        on_progress: ShowProgress | None = None,
    ) -> list[EvalResult]:
        """Evaluate every set with the weights ``version``, after ``step`` steps; collective."""
        settings = self.config.eval
        sampling = SamplingSpec(
            max_tokens=(
                settings.eval_max_response_len or self.config.rollout.rollout_max_response_len
            ),
            temperature=settings.eval_temperature,
            top_p=settings.eval_top_p,
        )
        results = []
        for name, prompts in self.sets.items():
            judged = generator(
                prompts,
                settings.n_samples_per_eval_prompt,
                sampling,
                step=EVAL_STREAM,
                version=version,
                on_progress=on_progress,
            )
            results.append(
                EvalResult.from_verdicts(
                    name,
                    [prompt.id for prompt, _ in prompts],
                    [[j.verdict.correct for j in row] for row in judged],
                    [prompt.level for prompt, _ in prompts],
                    step=step,
                    weights_version=version,
                )
            )
        return results


def result_path(run_dir: str | Path, name: str, step: int) -> Path:
    """Where a run keeps the result of an evaluation."""
    return Path(run_dir) / "eval" / name / f"step_{step:06d}.json"
