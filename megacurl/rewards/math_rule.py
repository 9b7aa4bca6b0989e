# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The rule-based math verifier: extract the final answer, compare it exactly, then by algebra."""

from __future__ import annotations

import re
from dataclasses import dataclass

from megacurl.rewards.exact import MAX_CHARACTERS, answers_equal
from megacurl.rewards.extract import extract_answer
from megacurl.rewards.latex import peel, split_top
from megacurl.rewards.normalise import normalise
from megacurl.rewards.registry import register_verifier
from megacurl.rewards.symbolic import Algebra
from megacurl.rewards.units import split_unit
from megacurl.rewards.verdict import Verdict

_INTEGER = re.compile(r"\s*[+-]?[0-9][0-9,]*\s*")
_LITERAL = re.compile(r"[+-]?\s*[0-9.][0-9., ]*(?:[eE][+-]?[0-9]+)?")


@register_verifier("math")
@dataclass(frozen=True)
class MathRule:
    r"""Right when the last box or "Answer:" line equals the answer (rules: docs/grading.md).

    require_value: an integer answer must then be written out. Equal forms such as "2^{10}" count
    otherwise, and so would "4 * 3 + 7" as the reply to "What is 4 * 3 + 7?".

    symbolic: compare expressions that differ as text by algebra ("2\sqrt{3}" and "\sqrt{12}"), in
    worker processes that are killed after a deadline; a comparison given up is wrong.

    Thread-safe; uses no signal and no eval. Numbers, letters and words take microseconds and start
    no process.
    """

    require_value: bool = False
    symbolic: bool = True

    def __call__(self, response: str, answer: str, *, finished: bool) -> Verdict:
        extracted = extract_answer(response, finished=finished)
        if extracted is None:
            return Verdict(correct=False, parsed=False)
        algebra = Algebra() if self.symbolic else None
        correct = answers_equal(extracted, answer, algebra)
        if correct and self.require_value and _INTEGER.fullmatch(answer):
            correct = _is_value(extracted)
        timeout = algebra is not None and algebra.timed_out and not correct
        return Verdict(correct=correct, parsed=True, timeout=timeout, extracted=extracted)


def _is_value(text: str) -> bool:
    """True for a written-out number, alone or as the last side of an equation."""
    if len(text) > MAX_CHARACTERS:
        return True
    number, _ = split_unit(split_top(normalise(text), "=")[-1])
    return _LITERAL.fullmatch(peel(number)) is not None
