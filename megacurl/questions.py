# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The questions that a run trains on."""

from __future__ import annotations

from collections.abc import Sequence

from megacurl.config.errors import about
from megacurl.config.schema import DataConfig
from megacurl.data.load import load_prompts
from megacurl.data.prompt import Prompt
from megacurl.evaluation.decontaminate import decontaminate
from megacurl.evaluation.question_set import QuestionSet


def training_questions(
    config: DataConfig, evaluated: Sequence[QuestionSet]
) -> tuple[list[Prompt], str]:
    """The questions of ``--prompt-data``, and what to tell about those left out, if any may be.

    Args:
        config: file, duplicates, instruction; whether questions of ``evaluated`` are left out.
        evaluated: the run's evaluation sets.

    Raises ConfigError for a file that cannot be used, or when no question is left.
    """
    with about("--prompt-data"):
        prompts = load_prompts(
            config.prompt_data,
            dedupe=config.dedupe,
            conflicts=config.conflicts,
            instruction=config.instruction,
        )
        left_out = ""
        if config.decontaminate:
            result = decontaminate(prompts, evaluated, config.instruction)
            prompts = result.kept
            left_out = f", left out as questions of the evaluation sets: {result.note()}"
    return prompts, left_out
