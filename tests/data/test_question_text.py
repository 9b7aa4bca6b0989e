# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The words of a question, whatever its layout."""

from __future__ import annotations

import pytest

from megacurl.data import DAPO_INSTRUCTION
from megacurl.data.question_text import question_tokens

QUESTION = "What is $\\frac{1}{2} + 3$?"
WORDS = ("what", "is", "\\", "frac", "1", "2", "+", "3")


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "what is  \\( \\dfrac{1}{2}+3 \\) ?",
        "What is\n\\[\\tfrac 1 2\\left+ 3 \\right\\]",
        "What is $$\\frac{1}{2}\\,+\\;3.$$",
        "Ｗｈａｔ is $\\frac{1}{2} + ３$？",
    ],
)
def test_layout_makes_no_difference(text: str) -> None:
    assert question_tokens(text) == WORDS


@pytest.mark.parametrize(
    "text",
    [
        "What is $\\frac{1}{2} - 3$?",
        "What is $\\frac{12}{3}$?",
        "What is $\\frac{1}{2} + 3.5$?",
        "What was $\\frac{1}{2} + 3$?",
    ],
)
def test_words_numbers_and_signs_do(text: str) -> None:
    assert question_tokens(text) != WORDS


@pytest.mark.parametrize("form", ["$Answer (without quotes)", "\\boxed{$Answer}"])
def test_text_around_the_question(form: str) -> None:
    framed = DAPO_INSTRUCTION.replace("$Answer (without quotes)", form, 1)
    assert form in framed
    assert question_tokens(framed.replace("{problem}", QUESTION)) == WORDS
    mine = "Think hard. {problem} Then answer."
    around = mine.replace("{problem}", framed.replace("{problem}", QUESTION))
    assert question_tokens(around, mine) == WORDS
    assert question_tokens(QUESTION, mine) == WORDS
    assert question_tokens(mine.replace("{problem}", QUESTION)) != WORDS


def test_other_scripts_and_odd_texts() -> None:
    assert question_tokens("求 $x$ 的值。") == ("求", "x", "的", "值", "。")
    assert question_tokens("") == question_tokens("$?$") == ()
    assert question_tokens("\x0crac{1}{2}") == ("rac", "1", "2")
