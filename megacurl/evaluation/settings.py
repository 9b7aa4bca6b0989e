# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The settings of ``megacurl eval`` and what can be checked before torch is imported."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from megacurl.config.errors import raise_problems
from megacurl.config.eval_specs import eval_spec_problems
from megacurl.evaluation.question_set import QuestionSet, read_question_sets
from megacurl.rewards.registry import get_verifier, verifier_options

SAMPLING_PRESETS: dict[str, tuple[float, float]] = {
    "vapo": (1.0, 0.7),
    "r1": (0.6, 0.95),
    "greedy": (0.0, 1.0),
}
"""(temperature, top-p): the VAPO and DAPO papers', DeepSeek-R1's, and the likeliest token."""


@dataclass(frozen=True)
class EvalArguments:
    """One evaluation: a model, benchmark files, how to sample and how to judge."""

    model: Annotated[str, tyro.conf.arg(metavar="PATH")]
    """Hugging Face folder, run folder (its newest checkpoint), or one checkpoint of a run."""
    data: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=FILE")]
    """Benchmark files (.jsonl, .parquet), each as NAME=FILE or FILE; "FILE@[0:50]" is a slice."""
    output: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """New or empty folder for results.json and the responses."""
    n_samples: int = 32
    """Responses to each question (the k of avg@k)."""
    preset_sampling: Literal["vapo", "r1", "greedy"] = "vapo"
    """Temperature and top-p: vapo 1.0 and 0.7, r1 (DeepSeek-R1) 0.6 and 0.95, greedy 0."""
    temperature: float | None = None
    """Replaces the preset's temperature."""
    top_p: float | None = None
    """Replaces the preset's top-p."""
    max_response_len: int = 8192
    """Tokens after which a response is truncated."""
    max_prompt_len: int = 2048
    """A benchmark with a longer prompt is refused: a score over a part of it means nothing."""
    instruction: str | None = None
    """Text around every question; must contain {problem}."""
    apply_chat_template: bool = True
    """Use the tokenizer's chat template."""
    verifier: str = "math"
    """How a response is judged."""
    require_value: bool = False
    """Refuse an unevaluated expression ("4 + 3") as the answer where the truth is a number."""
    symbolic: bool = True
    """Compare expressions that differ as text by algebra (math-verify, in worker processes)."""
    correct_threshold: float | None = None
    """Score from which a graded response is correct; default: the verifier's own."""
    seed: int = 1234
    """Seed of sampling and of the confidence intervals."""
    bf16: bool = False
    """Run the model in bfloat16; default is fp32."""
    rollout_engine: str = "transformers"
    """Engine that generates: transformers, or vllm where it is installed."""
    max_batch_size: int = 256
    """Responses that the engine of a rank decodes at once."""

    @property
    def sampling(self) -> tuple[float, float]:
        """Temperature and top-p after preset and flags."""
        temperature, top_p = SAMPLING_PRESETS[self.preset_sampling]
        return (
            temperature if self.temperature is None else self.temperature,
            top_p if self.top_p is None else self.top_p,
        )

    @property
    def verifier_options(self) -> dict[str, bool | float]:
        """Options that the verifier gets."""
        return verifier_options(
            require_value=self.require_value,
            symbolic=self.symbolic,
            correct_threshold=self.correct_threshold,
        )


def read_inputs(arguments: EvalArguments) -> list[QuestionSet]:
    """Check everything that needs no torch, and read the benchmark files.

    Raises ConfigError with all that is wrong with flags, model path and output folder, or with
    the first benchmark that cannot be used.
    """
    raise_problems(_problems(arguments))
    return read_question_sets(arguments.data, "--data", arguments.instruction)


def is_hf_folder(path: str | Path) -> bool:
    """Whether a path is a Hugging Face model folder rather than a run or its checkpoint."""
    return (Path(path) / "config.json").is_file()


def _problems(arguments: EvalArguments) -> Iterator[str]:
    if not arguments.data:
        yield "--data is empty; name at least one benchmark file, as in aime24=aime24.jsonl"
    yield from eval_spec_problems(arguments.data, "--data")
    for flag in ("n_samples", "max_response_len", "max_prompt_len", "max_batch_size"):
        if (value := getattr(arguments, flag)) < 1:
            yield f"--{flag.replace('_', '-')} {value} must be at least 1"
    threshold = arguments.correct_threshold
    if threshold is not None and not 0 < threshold <= 1:
        yield f"--correct-threshold {threshold} must be above 0 and at most 1"
    temperature, top_p = arguments.sampling
    if not (math.isfinite(temperature) and temperature >= 0):
        yield f"--temperature {temperature} must be 0 (greedy) or a positive number"
    if not 0 < top_p <= 1:
        yield f"--top-p {top_p} must be above 0 and at most 1 (1 is off)"
    if temperature == 0 and arguments.n_samples > 1:
        yield (
            f"--n-samples {arguments.n_samples} at temperature 0 would repeat one response; use "
            "--n-samples 1, or a temperature above 0"
        )
    try:
        get_verifier(arguments.verifier, **arguments.verifier_options)
    except ValueError as error:
        yield f"--verifier {arguments.verifier}: {error}"
    yield from _path_problems(Path(arguments.model), Path(arguments.output))


def _path_problems(model: Path, output: Path) -> Iterator[str]:
    run_marks = ("config.yaml", "run.json", "checkpoints")
    if not model.is_dir():
        yield f"--model {model} is no folder"
    elif not is_hf_folder(model) and not any((model / mark).exists() for mark in run_marks):
        yield (
            f"--model {model} holds neither a Hugging Face model (config.json) nor a run or "
            "checkpoint of megacurl train (config.yaml, run.json)"
        )
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        yield f"--output {output} already holds something; choose another folder"
