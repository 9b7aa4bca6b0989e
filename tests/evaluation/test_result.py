# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Stored evaluation results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from megacurl.evaluation.benchmark import score_eval
from megacurl.evaluation.result import EvalResult

VERDICTS = [[True, False], [True, True], [False, False]]
LEVELS = ["1", None, "Stufe ü"]


def make_result() -> EvalResult:
    return EvalResult.from_verdicts(
        "math", ["q1", "q2", "q3"], VERDICTS, LEVELS, step=20, weights_version=21
    )


def test_a_result_holds_the_counts_and_gives_the_same_metrics() -> None:
    result = make_result()
    assert result.num_correct == (1, 2, 0)
    assert (result.k, result.accuracy) == (2, 0.5)
    assert result.metrics() == score_eval("math", VERDICTS, LEVELS)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "eval" / "math.json"
    make_result().save(path)
    assert EvalResult.load(path) == make_result()
    assert [file.name for file in path.parent.iterdir()] == ["math.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": "2"}, "'k' is '2', not of type int"),
        ({"k": 1}, "not within 0..k=1"),
        ({"num_correct": [1, 2]}, "2 num_correct for 3 questions"),
        ({"num_correct": [1, 2, 0.5]}, r"'num_correct'\[2\] is 0.5"),
        ({"levels": "1"}, "'levels' is '1', not a list"),
        ({"question_ids": ["q", "q", "r"]}, "question_ids are empty or repeat"),
        ({"question_id": []}, "unknown field 'question_id' .*'question_ids'"),
        ({"set_name": "a/b"}, "bad name"),
    ],
)
def test_a_damaged_file_is_named_with_the_field(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "math.json"
    make_result().save(path)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change))
    with pytest.raises(ValueError, match=rf"math\.json is not an eval result: .*{message}"):
        EvalResult.load(path)


@pytest.mark.parametrize("text", ["", "[]", '{"k": 1}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"x\.json is not an eval result"):
        EvalResult.load(path)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="2 levels for 3 questions"):
        replace(make_result(), levels=("1", "2"))
