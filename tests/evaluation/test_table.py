# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The before/after table."""

from __future__ import annotations

import io
import re

import pytest

from megacurl.evaluation.result import EvalResult
from megacurl.evaluation.table import before_after_table, level_rows, print_before_after


def result(
    counts: dict[str, int], levels: list[str | None], k: int = 4, step: int = 0
) -> EvalResult:
    return EvalResult(
        set_name="math",
        k=k,
        step=step,
        weights_version=step + 1,
        question_ids=tuple(counts),
        num_correct=tuple(counts.values()),
        levels=tuple(levels),
    )


BEFORE = result({"a": 1, "b": 3, "c": 0, "d": 4}, ["word", "add", "word", "add"])
AFTER = result({"d": 4, "c": 2, "b": 2, "a": 4}, ["add", "word", "add", "word"], step=200)


def test_plain_table() -> None:
    assert before_after_table(BEFORE, AFTER) == (
        "math, avg@4: step 0 -> 200, weights version 1 -> 201\n"
        "level  questions  before  after  change\n"
        "add            2   0.875  0.750  -0.125\n"
        "word           2   0.125  0.750  +0.625\n"
        "all            4   0.500  0.750  +0.250"
    )


def test_graded_levels_come_in_order_of_their_number() -> None:
    counts = {"a": 1, "b": 4, "c": 2}
    levels: list[str | None] = ["Level 10", "Level 9", "Level 1"]
    rows = level_rows(result(counts, levels), result(counts, levels))
    assert [row.level for row in rows] == ["Level 1", "Level 9", "Level 10", "all"]


def test_other_levels_come_from_easy_to_hard() -> None:
    counts = {"a": 1, "b": 4, "c": 2, "d": 0}
    levels: list[str | None] = ["add1", "mul1", "sum3", None]
    rows = level_rows(result(counts, levels), result(counts, levels))
    assert [row.level for row in rows] == ["mul1", "sum3", "add1", "unlabelled", "all"]


def test_without_levels_only_the_total_is_left() -> None:
    same = result({"a": 1, "b": 3}, [None, None])
    (row,) = level_rows(same, same)
    assert (row.level, row.questions, row.before, row.change) == ("all", 2, 0.5, 0.0)


def test_k_may_differ_and_is_told() -> None:
    more = result({"a": 8, "b": 0, "c": 0, "d": 0}, ["word", "add", "word", "add"], k=8)
    assert "avg@4 -> avg@8" in before_after_table(BEFORE, more)
    assert level_rows(BEFORE, more)[-1].after == 0.25


def test_different_questions_or_levels_are_not_compared() -> None:
    other = result({"a": 1, "b": 3, "c": 0, "e": 4}, ["word", "add", "word", "add"])
    with pytest.raises(ValueError, match=r"question 'd' .* 'add' before, '\(absent\)' after"):
        level_rows(BEFORE, other)
    relabelled = result({"a": 1, "b": 3, "c": 0, "d": 4}, ["word", "add", "sub", "add"])
    with pytest.raises(ValueError, match="question 'c' has level 'word' before, 'sub' after"):
        level_rows(BEFORE, relabelled)


def test_color_table_has_the_same_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    counts = {"a": 1}
    table = before_after_table(
        result(counts, ["[bold] x"]), result({"a": 2}, ["[bold] x"]), color=True
    )
    assert "\x1b[32m" in table  # an improvement is green
    text = re.sub(r"\x1b\[[0-9;]*m", "", table)
    assert "[bold] x" in text
    assert "+0.250" in text


def test_a_file_gets_plain_text() -> None:
    stream = io.StringIO()
    print_before_after(BEFORE, AFTER, stream)
    assert stream.getvalue() == before_after_table(BEFORE, AFTER) + "\n"
