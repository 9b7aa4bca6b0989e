# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Partial credit where the answer is a list of values: the roots of an equation, say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from megacurl.rewards.collection import split_collection
from megacurl.rewards.exact import MAX_CHARACTERS, Same, answers_equal, normalised_equal
from megacurl.rewards.extract import extract_answer
from megacurl.rewards.latex import peel
from megacurl.rewards.normalise import normalise
from megacurl.rewards.number import parse_number
from megacurl.rewards.registry import register_verifier
from megacurl.rewards.symbolic import Algebra
from megacurl.rewards.units import split_unit
from megacurl.rewards.verdict import Verdict

MAX_ITEMS = 64


@register_verifier("list_answers")
@dataclass(frozen=True)
class ListAnswers:
    """Graded by the values that response and reference share, over those that either names.

    Answers are found and compared as by ``math``, and the grade is 1 wherever that says right.
    m common values of g given and r expected ones give m/(g + r - m): a value too many costs, so
    naming everything does not pay. Only lists and sets have parts; a tuple, an interval or a
    matrix is one value. An answer of more than 64 values or 500 characters has no partial credit.

    correct_threshold: grade from which a response is correct.
    symbolic: as in ``math``.
    """

    correct_threshold: float = 1.0
    symbolic: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.correct_threshold <= 1:
            raise ValueError(
                f"correct_threshold is {self.correct_threshold}; it must be above 0 and at most 1"
            )

    def __call__(self, response: str, answer: str, *, finished: bool) -> Verdict:
        extracted = extract_answer(response, finished=finished)
        if extracted is None:
            return Verdict(correct=False, parsed=False, grade=0.0)
        algebra = Algebra() if self.symbolic else None
        grade = 1.0
        if not answers_equal(extracted, answer, algebra):
            grade = shared_values(extracted, answer, algebra)
        correct = grade >= self.correct_threshold
        timeout = algebra is not None and algebra.timed_out and not correct
        return Verdict(correct, True, timeout=timeout, extracted=extracted, grade=grade)


def shared_values(given: str, truth: str, algebra: Same | None = None) -> float:
    """Values in both answers over values in either, in [0, 1]; repeated ones count as often."""
    if max(len(given), len(truth)) > MAX_CHARACTERS:
        return 0.0
    left, right = _values(given), _values(truth)
    if not left or not right or max(len(left), len(right)) > MAX_ITEMS:
        return 0.0
    left, right, common = _paired(left, right, None)
    if algebra is not None:  # for what is left only: most values are plain numbers
        left, right, more = _paired(left, right, algebra)
        common += more
    return common / (common + len(left) + len(right))


def _values(text: str) -> list[str]:
    """The normalised parts of a list; anything else is one value."""
    text = peel(normalise(peel(text)))
    if parse_number(split_unit(text)[0]) is not None:  # "1,234" is a number
        return [text]
    found = split_collection(text)
    return [text] if found is None or found.kind != "list" else [v for v in found.items if v]


def _paired(
    left: Sequence[str], right: Sequence[str], algebra: Same | None
) -> tuple[list[str], list[str], int]:
    """What has no partner on either side, and how many pairs there are."""
    alone, remaining = [], list(right)
    for value in left:
        partner = next((r for r in remaining if normalised_equal(value, r, algebra)), None)
        if partner is None:
            alone.append(value)
        else:
            remaining.remove(partner)
    return alone, remaining, len(left) - len(alone)
