# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What the evaluation tests ask the ranks of a world to do, and a verifier for random models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from megacurl.config.errors import ConfigError
from megacurl.config.schema import Config
from megacurl.eval_command import evaluate
from megacurl.evaluation.settings import EvalArguments, read_inputs
from megacurl.rewards.registry import register_verifier
from megacurl.rewards.verdict import Verdict
from tests import jobs


@register_verifier("length_class")
def length_class(response: str, answer: str, *, finished: bool) -> Verdict:
    """The length of a response modulo 4 is its answer, and 3 is none: random models do answer."""
    extracted = str(len(response) % 4)
    if extracted == "3":
        return Verdict(correct=False, parsed=False)
    return Verdict(correct=extracted == answer, parsed=True, extracted=extracted)


def run_eval(model: Path, data: tuple[str, ...], output: Path, **flags: Any) -> str:
    """Evaluate in the world that exists; the refusal, or "" when there was none."""
    defaults = {"n_samples": 3, "max_response_len": 12, "verifier": "length_class", "seed": 5}
    arguments = EvalArguments(str(model), data, str(output), **{**defaults, **flags})
    try:
        evaluate(arguments, read_inputs(arguments), jobs.enter(jobs.settings(model)))
    except ConfigError as error:
        return str(error)
    return ""


def run_training(config: Config) -> None:
    """The training of ``tests.jobs``, with the verifier of this module."""
    jobs.run_training(config)
