# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Benchmark files, read the same way for a run's evaluations and for ``megacurl eval``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from megacurl.config.errors import ConfigError
from megacurl.config.eval_specs import EvalSpec, parse_eval_spec
from megacurl.data.chat import encode_prompts
from megacurl.data.errors import DataError
from megacurl.data.load import load_prompts
from megacurl.data.prompt import Prompt


@dataclass(frozen=True)
class QuestionSet:
    """A benchmark: its name and file, and its questions in file order, ids unique."""

    spec: EvalSpec
    prompts: list[Prompt]


def read_question_sets(
    specs: Sequence[str], flag: str, instruction: str | None
) -> list[QuestionSet]:
    """Read ``NAME=FILE`` entries that ``eval_spec_problems`` has nothing against.

    Rows that repeat under one id count once. Raises ConfigError, naming flag and entry, for a file
    that cannot be used; one question with two answers is among the reasons.
    """
    sets = []
    for entry in specs:
        spec = parse_eval_spec(entry)
        try:
            prompts = load_prompts(spec.path, conflicts="error", instruction=instruction)
        except DataError as error:
            raise ConfigError(f"{flag} {entry}: {error}") from error
        sets.append(QuestionSet(spec, prompts))
    return sets


def encode_question_set(
    one: QuestionSet,
    tokenizer: Any,
    *,
    apply_chat_template: bool,
    max_prompt_len: int,
    flag: str,
) -> list[tuple[Prompt, list[int]]]:
    """Every question with its token ids, in order.

    Raises ConfigError, naming ``flag``, when one has more than ``max_prompt_len`` tokens: a score
    over a part of a benchmark means nothing.
    """
    items = encode_prompts(
        one.prompts,
        tokenizer,
        apply_chat_template=apply_chat_template,
        max_prompt_len=sys.maxsize,
    ).items
    lengths = [len(ids) for _, ids in items]
    if (longest := max(lengths)) > max_prompt_len:
        raise ConfigError(
            f"{one.spec.name}: {sum(length > max_prompt_len for length in lengths)} of "
            f"{len(items)} prompts are longer than {flag} {max_prompt_len}; raise it to {longest}, "
            "a score over a part of a benchmark means nothing"
        )
    return items
