# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Stored responses, and the scores counted from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from megacurl.evaluation.overlap import Overlap
from megacurl.evaluation.report import format_report, make_report
from megacurl.evaluation.responses import Response, read_responses, write_responses
from megacurl.observe.schema import METRICS


def response(question: str, sample: int, extracted: str | None, truth: str) -> Response:
    return Response(
        id=question,
        sample=sample,
        text=f"über {extracted}",
        answer=truth,
        extracted=extracted,
        correct=extracted == truth,
        timeout=False,
        error=None,
        finish_reason="length" if extracted is None else "stop",
        tokens=10 + sample,
        score=float(extracted == truth),
    )


GROUPS = [
    [response("a", k, x, "4") for k, x in enumerate(["4", "4", "5", "4"])],
    [response("b", k, x, "1") for k, x in enumerate(["2", "2", "1", None])],
    [response("c", k, x, "9") for k, x in enumerate(["9", "8", "7", "8"])],
    [response("d", k, x, "0") for k, x in enumerate([None, None, None, None])],
]


def test_scores_by_hand() -> None:
    report = make_report("mini", GROUPS, ["1", "1", "2", "2"], step=7, seed=1)
    assert report.metrics() == pytest.approx(
        {
            "eval/mini/avg@4": (3 + 1 + 1 + 0) / 16,
            "eval/mini/pass@2": (1 + 1 / 2 + 1 / 2 + 0) / 4,
            "eval/mini/pass@4": 3 / 4,
            "eval/mini/maj@4": 1 / 4,
            "eval/mini/level/1": 4 / 8,
            "eval/mini/level/2": 1 / 8,
        }
    )
    for name in report.metrics():
        assert any(metric.matches(name) for metric in METRICS), name
    assert (report.unparsed, report.truncated, report.tokens_mean) == (5 / 16, 5 / 16, 11.5)
    assert (report.result.step, report.result.num_correct) == (7, (3, 1, 1, 0))
    for score in report.scores:
        assert 0 <= score.low <= score.value <= score.high <= 1


def test_partial_credit_has_a_row_of_its_own() -> None:
    half = [[replace(r, score=1.0 if r.correct else 0.5) for r in group] for group in GROUPS]
    plain = make_report("mini", GROUPS, [None] * 4, step=0, seed=1)
    report = make_report("mini", half, [None] * 4, step=0, seed=1)
    metrics = report.metrics()
    assert metrics.pop("eval/mini/score@4") == (5 + 11 / 2) / 16
    assert metrics == plain.metrics()
    assert any(metric.matches("eval/mini/score@4") for metric in METRICS)


def test_responses_from_before_there_were_scores(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write_responses(path, GROUPS)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        del row["score"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_responses(path) == GROUPS


def test_the_table() -> None:
    overlap = Overlap(1, 0, 4, frozenset({"a"}))
    report = make_report("mini", GROUPS, [None] * 4, step=0, seed=1, overlap=overlap)
    text = format_report(report).splitlines()
    lines = [line.split() for line in text]
    assert lines[0] == ["mini:", "4", "questions", "x", "4", "responses"]
    assert lines[2][:3] == ["avg@4", "4", "0.3125"]
    assert lines[5][:3] == ["maj@4", "4", "0.2500"]
    assert lines[6][:5] == ["avg@4", "without", "DAPO-Math-17k", "3", "0.1667"]
    assert text[7:] == ["no answer 31.2%, truncated 31.2%, 12 tokens a response"]
    stored = report.to_json()["overlap"]
    assert stored["ids"] == ["a"] and stored["avg_without"]["value"] == pytest.approx(1 / 6)


def test_nothing_is_left_without_the_overlap() -> None:
    overlap = Overlap(4, 0, 4, frozenset("abcd"))
    report = make_report("mini", GROUPS, [None] * 4, step=0, seed=1, overlap=overlap)
    assert report.without_overlap is None
    assert report.to_json()["overlap"]["avg_without"] is None


def test_responses_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out" / "mini.responses.jsonl"
    write_responses(path, GROUPS)
    assert read_responses(path) == GROUPS
    assert len(path.read_text().splitlines()) == 16
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_lone_surrogate_costs_one_character(tmp_path: Path) -> None:
    path = tmp_path / "mini.responses.jsonl"
    odd = Response("a", 0, "x\ud800y", "1", None, False, False, None, "stop", 3, 0.0)
    write_responses(path, [[odd]])
    ((back,),) = read_responses(path)
    assert back.text == "x?y"


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "a"}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "mini.responses.jsonl"
    write_responses(path, GROUPS[:1])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match="line 5"):
        read_responses(path)
