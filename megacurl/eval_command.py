# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl eval``: responses of a model to benchmark files, and their scores.

Every rank of a torchrun start holds the whole model and answers its share of the questions; what
is sampled does not depend on the number of ranks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from megacurl import __version__
from megacurl.config.errors import ConfigError, refusing
from megacurl.config.schema import ParallelConfig
from megacurl.data.prompt import fingerprint
from megacurl.data.tokenizer import load_tokenizer
from megacurl.eval_model import agreed_by_all, policy_folder, start_engine
from megacurl.evaluate import EVAL_STREAM
from megacurl.evaluation.overlap import find_overlap
from megacurl.evaluation.progress import EvalProgress
from megacurl.evaluation.question_set import QuestionSet, encode_question_set
from megacurl.evaluation.report import SetReport, format_report, make_report
from megacurl.evaluation.responses import Response, write_responses
from megacurl.evaluation.settings import EvalArguments
from megacurl.generation import EncodedPrompt, Generator, Judged
from megacurl.megatron import groups
from megacurl.megatron.groups import Grid
from megacurl.rewards.registry import get_verifier
from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.registry import create_engine, engine_class
from megacurl.rollout.types import SamplingSpec
from megacurl.utils.files import atomic_write_json


def main(arguments: EvalArguments, sets: Sequence[QuestionSet]) -> None:
    """Evaluate; every rank of the world calls this with what ``read_inputs`` gave it.

    Raises ConfigError, on all ranks and before anything is written, for a model or tokenizer that
    cannot be loaded and for lengths that do not fit the model.
    """
    grid = groups.initialize(ParallelConfig(), arguments.seed)
    try:
        evaluate(arguments, sets, grid)
    except ConfigError:
        groups.shut_down()  # every rank is here: a gloo group left open can abort the exit
        raise
    groups.shut_down()


def evaluate(arguments: EvalArguments, sets: Sequence[QuestionSet], grid: Grid) -> None:
    """:func:`main` in a world that exists; collective."""
    with policy_folder(arguments, grid) as (folder, step):
        _Evaluation(arguments, sets, folder, step, grid).run()


class _Evaluation:
    """A loaded model and tokenised benchmarks."""

    def __init__(
        self,
        arguments: EvalArguments,
        sets: Sequence[QuestionSet],
        folder: Path,
        step: int,
        grid: Grid,
    ) -> None:
        self.arguments, self.sets, self.step, self.grid = arguments, sets, step, grid
        self.output = Path(arguments.output)
        with agreed_by_all(grid, f"--model {arguments.model}"):
            tokenizer = load_tokenizer(folder, "--model")
            name = arguments.rollout_engine
            with refusing(f"--rollout-engine {name}", ValueError, ImportError):
                if engine_class(name).is_client:
                    raise ValueError("its servers get their weights from a training; use vllm")
                engine = create_engine(
                    name,
                    model=folder,
                    dtype="bfloat16" if arguments.bf16 else "float32",
                    device=str(grid.device),
                    max_batch_size=arguments.max_batch_size,
                )
            self.encoded = [_encode(one, tokenizer, engine, arguments) for one in sets]
            start_engine(engine, folder, arguments.model)
        verifier = get_verifier(arguments.verifier, **arguments.verifier_options)
        self.generator = Generator(engine, tokenizer, verifier, grid, arguments.seed)

    def run(self) -> None:
        """Evaluate set by set; a set's table and responses are there as soon as it is done."""
        first = self.grid.rank == 0
        with agreed_by_all(self.grid, f"--output {self.arguments.output}"):
            if first:
                self.output.mkdir(parents=True, exist_ok=True)
                print(self._headline(), flush=True)
        progress = EvalProgress(enabled=first)
        entries: dict[str, Any] = {}
        for one, encoded in zip(self.sets, self.encoded, strict=True):
            begin = time.monotonic()
            report, responses = self._evaluate(one, encoded, progress)
            if not first:
                continue
            name = one.spec.name
            write_responses(self.output / f"{name}.responses.jsonl", responses)
            print(format_report(report))
            if report.overlap is not None:
                print(report.overlap.note(name))
            print(flush=True)
            entries[name] = {
                "file": one.spec.path,
                "fingerprint": fingerprint(one.prompts),
                "seconds": time.monotonic() - begin,
                **report.to_json(),
            }
        self.generator.engine.shutdown()
        if first:
            self._write_results(entries)

    def _headline(self) -> str:
        temperature, top_p = self.arguments.sampling
        step = "" if self.step == 0 else f" after step {self.step}"
        return (
            f"{self.arguments.model}{step}: temperature {temperature:g}, top-p {top_p:g}, at most "
            f"{self.arguments.max_response_len} tokens, seed {self.arguments.seed}\n"
        )

    def _evaluate(
        self, one: QuestionSet, encoded: list[EncodedPrompt], progress: EvalProgress
    ) -> tuple[SetReport, list[list[Response]]]:
        temperature, top_p = self.arguments.sampling
        sampling = SamplingSpec(
            max_tokens=self.arguments.max_response_len, temperature=temperature, top_p=top_p
        )
        progress.begin(one.spec.name)
        try:
            judged = self.generator(
                encoded,
                self.arguments.n_samples,
                sampling,
                step=EVAL_STREAM,
                version=0,
                on_progress=progress,
            )
        finally:
            progress.end()
        responses = _responses(encoded, judged, self.generator.tokenizer)
        report = make_report(
            one.spec.name,
            responses,
            [prompt.level for prompt in one.prompts],
            step=self.step,
            seed=self.arguments.seed,
            overlap=find_overlap(one.spec.name, [prompt.id for prompt in one.prompts]),
        )
        return report, responses

    def _write_results(self, entries: dict[str, Any]) -> None:
        temperature, top_p = self.arguments.sampling
        path = self.output / "results.json"
        atomic_write_json(
            path,
            {
                "megacurl": __version__,
                "step": self.step,
                "settings": {
                    **asdict(self.arguments),
                    "temperature": temperature,
                    "top_p": top_p,
                },
                "sets": entries,
            },
        )
        print(f"{path} and the responses beside it hold the details")


def _encode(
    one: QuestionSet, tokenizer: Any, engine: RolloutEngine, arguments: EvalArguments
) -> list[EncodedPrompt]:
    items = encode_question_set(
        one,
        tokenizer,
        apply_chat_template=arguments.apply_chat_template,
        max_prompt_len=arguments.max_prompt_len,
        flag="--max-prompt-len",
    )
    name, longest = one.spec.name, max(len(ids) for _, ids in items)
    room = engine.max_model_len - longest
    if arguments.max_response_len > room:
        raise ConfigError(
            f"--max-response-len {arguments.max_response_len}: with the longest prompt of "
            f"{name} ({longest} tokens) the model's {engine.max_model_len} tokens leave "
            + (f"{room}; use at most that" if room > 0 else "nothing; leave this benchmark out")
        )
    return items


def _responses(
    prompts: Sequence[EncodedPrompt], judged: Sequence[Sequence[Judged]], tokenizer: Any
) -> list[list[Response]]:
    return [
        [
            Response(
                id=prompt.id,
                sample=index,
                text=tokenizer.decode(one.sample.token_ids, skip_special_tokens=True),
                answer=prompt.answer,
                extracted=one.verdict.extracted,
                correct=one.verdict.correct,
                timeout=one.verdict.timeout,
                error=one.verdict.error,
                finish_reason=one.sample.finish_reason,
                tokens=len(one.sample.token_ids),
                score=one.verdict.score,
            )
            for index, one in enumerate(row)
        ]
        for (prompt, _), row in zip(prompts, judged, strict=True)
    ]
