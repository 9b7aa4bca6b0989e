# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Reference answers of every shipped benchmark: each equals itself and no unrelated one."""

from __future__ import annotations

from pathlib import Path

import pytest

from megacurl.data import load_prompts
from megacurl.rewards import answers_equal, get_verifier

FILES = sorted((Path(__file__).parents[2] / "examples/data").glob("*.jsonl"))
MATH = get_verifier("math")

FORMS = (
    "So we get\nAnswer: {}",
    "Answer: {}\n",
    "**Answer:** {}",
    "Answer: ${}$",
    "Answer: \\({}\\).",
    "Thus \\boxed{{{}}}.",
    "$$\\boxed{{ {} }}$$\nThat is it.",
    "<think>\\boxed{{0}}</think>\nAnswer: \\boxed{{{}}}",
)


def golds() -> list[tuple[str, str]]:
    return sorted({(f.stem, p.answer) for f in FILES for p in load_prompts(str(f))})


@pytest.mark.parametrize("form", FORMS)
def test_every_gold_equals_itself(form: str) -> None:
    assert len(golds()) > 450
    wrong = [
        gold for gold in golds() if not MATH(form.format(gold[1]), gold[1], finished=True).correct
    ]
    assert wrong == []


def test_another_gold_is_not_paid() -> None:
    """All pairs of MATH-500 golds: only forms of one value may be equal."""
    answers = sorted({a for name, a in golds() if name == "math500"})[::2]
    equal = {(a, b) for a in answers for b in answers if a < b and answers_equal(a, b)}
    assert equal <= {
        ("10,\\!080", "10080"), ("106", "106^\\circ"), ("120", "120^\\circ"), ("204", "204_5"),
        ("30", "30^\\circ"), ("36", "36^\\circ"), ("36", "\\$36"), ("40", "40_9"),
        ("55", "55^\\circ"), ("75", "75^\\circ"), ("76", "76^\\circ"), ("90", "90^\\circ"),
        ("2 \\sqrt{5}", "2\\sqrt{5}"), ("4.5", "\\frac{9}{2}"), ("5", "x=5"), ("-2,1", "1,-2"),
        ("\\frac 34", "\\frac{3}{4}"), ("\\frac14", "\\frac{1}{4}"),
        ("\\frac43", "\\frac{4}{3}"), ("15", "15\\mbox{ cm}^2"),
    }  # fmt: skip


def test_near_misses_of_integer_golds_are_wrong() -> None:
    integers = [a for _, a in golds() if a.lstrip("-").isdecimal() and a != "0"]
    assert len(integers) > 200
    for gold in integers:
        for wrong in (
            str(int(gold) + 1),
            str(-int(gold) - 1),
            gold + "1",
            gold + ".5",
            f"{gold}/7",
        ):
            assert not answers_equal(wrong, gold), (wrong, gold)
            assert not MATH(f"\\boxed{{{wrong}}}", gold, finished=True).correct, (wrong, gold)
