# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Training questions that an evaluation asks too, and a training set without them.

A training question is left out if, in its words, it is

* the same as an evaluated one, or
* of nearly the same text: at least half of the runs of three words are shared, and every number of
  the evaluated question occurs in it. Other numbers make it another question.

For evaluated questions that the overlap list names (``overlap.py``) the numbers are not looked at,
since the list says that there is a rewritten copy.

The measure of shared runs is Dice's coefficient. On DAPO-Math-17k all 54 listed questions of AMC23,
MATH-500 and OlympiadBench's English half are found, at 0.53 or above, and none of AIME 2024, AIME
2025 or GSM8K. It also finds copies that the list lacks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from megacurl.data.errors import DataError
from megacurl.data.prompt import Prompt
from megacurl.data.question_text import question_tokens
from megacurl.evaluation.overlap import find_overlap
from megacurl.evaluation.question_set import QuestionSet

_RUN = 3
_LEAST_SHARED = 0.5
# Shorter ones must be the same: in "What is 4 * 3 + 7?" most runs are those of the template.
_LEAST_TOKENS = 12

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Twin:
    """A training question and the evaluated question that it repeats."""

    prompt_id: str
    set_name: str
    question_id: str


@dataclass(frozen=True)
class Decontaminated:
    """Training questions without twins, in their order, and the twins that were left out."""

    kept: list[Prompt]
    twins: list[Twin]

    def note(self) -> str:
        """``"35 of amc23, 2 of math500"``; ``"none"``."""
        counts = Counter(twin.set_name for twin in self.twins)
        return ", ".join(f"{count} of {name}" for name, count in counts.most_common()) or "none"


def decontaminate(
    prompts: Sequence[Prompt], sets: Sequence[QuestionSet], instruction: str | None = None
) -> Decontaminated:
    """Leave out the training questions that ``sets`` ask.

    Args:
        prompts: training questions.
        sets: evaluated questions.
        instruction: the template that both were loaded with; it is no part of the question.

    Raises DataError when nothing would be left.
    """
    twins = find_twins(prompts, sets, instruction)
    left_out = {twin.prompt_id for twin in twins}
    kept = [prompt for prompt in prompts if prompt.id not in left_out]
    if prompts and not kept:
        raise DataError(
            f"--decontaminate leaves none of the {len(prompts)} training questions: the evaluation "
            "sets ask them all; give other files"
        )
    return Decontaminated(kept, twins)


def find_twins(
    prompts: Sequence[Prompt], sets: Sequence[QuestionSet], instruction: str | None = None
) -> list[Twin]:
    """The training questions that ``sets`` ask, in order; arguments as in :func:`decontaminate`.

    A question with copies in several sets counts for the most similar one.
    """
    evaluated = _Evaluated(sets, instruction)
    twins = []
    for prompt in prompts:
        match = evaluated.find(question_tokens(prompt.messages[-1]["content"], instruction))
        if match is not None:
            twins.append(Twin(prompt.id, match.set_name, match.id))
    return twins


def format_overlap(prompts: Sequence[Prompt], sets: Sequence[QuestionSet]) -> str:
    """How many of ``prompts`` would be left out, and for each of ``sets`` how many of its questions
    they ask."""
    twins = find_twins(prompts, sets)
    lines = [f"--decontaminate would leave out {len(twins):,} of {len(prompts):,} questions"]
    width = max(len(one.spec.name) for one in sets)
    for one in sets:
        asked = [twin.question_id for twin in twins if twin.set_name == one.spec.name]
        lines.append(
            f"  {one.spec.name:<{width}}  {len(asked):,}, which ask {len(set(asked)):,} of its "
            f"{len(one.prompts):,}"
        )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Question:
    set_name: str
    id: str
    runs: int
    numbers: frozenset[str]  # those that a near copy must have


class _Evaluated:
    """The evaluated questions by their words, and by every run of words."""

    def __init__(self, sets: Sequence[QuestionSet], instruction: str | None) -> None:
        self._questions: list[_Question] = []
        self._by_tokens: dict[Tokens, int] = {}
        self._by_run: defaultdict[Tokens, list[int]] = defaultdict(list)
        for one in sets:
            name = one.spec.name
            overlap = find_overlap(name, [prompt.id for prompt in one.prompts])
            listed = overlap.ids if overlap else frozenset()
            for prompt in one.prompts:
                tokens = question_tokens(prompt.messages[-1]["content"], instruction)
                self._add(name, prompt.id, tokens, prompt.id in listed)

    def _add(self, set_name: str, question_id: str, tokens: Tokens, listed: bool) -> None:
        index, runs = len(self._questions), _runs(tokens)
        numbers = frozenset() if listed else _numbers(tokens)
        self._questions.append(_Question(set_name, question_id, len(runs), numbers))
        self._by_tokens.setdefault(tokens, index)
        if len(tokens) >= _LEAST_TOKENS:
            for run in runs:
                self._by_run[run].append(index)

    def find(self, tokens: Tokens) -> _Question | None:
        """The evaluated question that these words repeat; the most similar one of several."""
        if tokens in self._by_tokens:
            return self._questions[self._by_tokens[tokens]]
        runs = _runs(tokens)
        common = runs & self._by_run.keys()
        # So many must be shared however short the evaluated question is; most texts end here.
        if 2 * len(common) < _LEAST_SHARED * len(runs):
            return None
        shared = Counter(index for run in common for index in self._by_run[run])
        numbers = _numbers(tokens)
        best, similarity = None, _LEAST_SHARED
        for index, count in shared.items():
            question = self._questions[index]
            dice = 2 * count / (len(runs) + question.runs)
            if dice >= similarity and question.numbers <= numbers:
                best, similarity = question, dice
        return best


def _runs(tokens: Tokens) -> set[Tokens]:
    return {tokens[start : start + _RUN] for start in range(len(tokens) - _RUN + 1)}


def _numbers(tokens: Tokens) -> frozenset[str]:
    return frozenset(token for token in tokens if token.isdigit())
