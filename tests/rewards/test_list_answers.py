# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Partial credit for lists of answers."""

from __future__ import annotations

import time

import pytest

from megacurl.rewards import Verdict, get_verifier
from megacurl.rewards.list_answers import ListAnswers, shared_values


@pytest.mark.parametrize(
    ("given", "truth", "grade"),
    [
        ("1, 2, 3", "3, 1, 2", 1.0),
        ("1, 2", "1, 2, 3", 2 / 3),
        ("1, 2, 3", "1, 2", 2 / 3),
        ("1, 4", "1, 2", 1 / 3),
        ("4, 5", "1, 2", 0.0),
        ("1, 1", "1, 2", 1 / 3),
        ("1, 2, 3, 4", "1", 1 / 4),
        ("1/2 and 0.25", "\\frac{1}{4}, 3", 1 / 3),
        ("\\{1, 2\\}", "2, 3", 1 / 3),
        ("x = 1 or x = 2", "1, 3", 1 / 3),
        ("\\pm 2", "2, 3", 1 / 3),
        ("(1, 2), (3, 4)", "(3, 4), (2, 1)", 1 / 3),
        ("(1, 2)", "1, 2", 0.0),
        ("(1, 3)", "(1, 2)", 0.0),
        ("1,234", "1234, 5", 1 / 2),
        ("\\text{Bob}, Ann", "Ann, Tom", 1 / 3),
        (", ,", "1, 2", 0.0),
    ],
)
def test_the_grade_is_what_is_shared_over_what_either_names(
    given: str, truth: str, grade: float
) -> None:
    verdict = get_verifier("list_answers")(f"Answer: {given}", truth, finished=True)
    assert verdict.score == pytest.approx(grade)
    assert verdict.correct == (grade == 1.0)
    assert verdict.parsed and verdict.extracted == given


@pytest.mark.parametrize(
    ("given", "truth"),
    [("x \\ge 2", "[2, \\infty)"), ("(C) 42", "42"), ("x \\in \\{1, 2\\}", "2, 1"), ("4.0", "4")],
)
def test_full_credit_wherever_math_says_right(given: str, truth: str) -> None:
    response = f"Answer: {given}"
    assert get_verifier("math")(response, truth, finished=True).correct
    assert get_verifier("list_answers")(response, truth, finished=True).score == 1.0


def test_no_answer_has_no_credit() -> None:
    graded = get_verifier("list_answers")
    assert graded("1, 2", "1, 2", finished=True) == Verdict(False, False, grade=0.0)
    assert graded("Answer: 1, 2", "1, 2", finished=False).score == 0.0


def test_values_are_compared_by_algebra_where_asked_for() -> None:
    response, truth = "Answer: \\sqrt{12}, 5", "2\\sqrt{3}, 7"
    assert ListAnswers()(response, truth, finished=True).score == pytest.approx(1 / 3)
    assert ListAnswers(symbolic=False)(response, truth, finished=True).score == 0.0


def test_the_threshold_decides_what_is_correct() -> None:
    response = "Answer: 1, 2, 3"
    for threshold, correct in ((0.5, True), (0.75, True), (0.76, False), (1.0, False)):
        verdict = ListAnswers(threshold)(response, "1, 2, 3, 4", finished=True)
        assert (verdict.score, verdict.correct) == (0.75, correct)
    for threshold in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="correct_threshold is"):
            ListAnswers(threshold)


def test_long_lists_are_not_slow() -> None:
    values = ", ".join(map(str, range(1, 65)))
    assert shared_values(values, values + ", 65") == 0.0  # one too many
    others = ", ".join(str(100 + i) for i in range(64))
    start = time.process_time()
    assert shared_values(others, values) == 0.0
    assert time.process_time() - start < 1.0
    assert shared_values("1," * 300, "1, 2") == 0.0
