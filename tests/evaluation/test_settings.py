# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Refusals of ``megacurl eval`` that need no torch, and its sampling presets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from megacurl.cli import main
from megacurl.evaluation.settings import EvalArguments, read_inputs

QUESTION = '{"id": "q1", "prompt": "1+1?", "answer": "2"}\n'


def prepared(folder: Path) -> dict[str, str]:
    """A model folder as far as the first checks look at it, files, and an occupied folder."""
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    (folder / "odd").mkdir()
    (folder / "odd" / "readme").touch()
    (folder / "q.jsonl").write_text(QUESTION)
    (folder / "empty.jsonl").touch()
    (folder / "no_answer.jsonl").write_text('{"id": "q1", "prompt": "1+1?"}\n')
    (folder / "two.jsonl").write_text(QUESTION + QUESTION.replace('"2"', '"3"'))
    return {"--model": "model", "--data": "q.jsonl", "--output": "out"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--model": "absent"}, "--model absent is no folder"),
        ({"--model": "odd"}, "--model odd holds neither a Hugging Face model (config.json) nor"),
        ({"--output": "odd"}, "--output odd already holds something; choose another folder"),
        ({"--output": "q.jsonl"}, "--output q.jsonl already holds something"),
        ({"--data": "aime24=absent.jsonl"}, "--data aime24=absent.jsonl: absent.jsonl is no file"),
        ({"--data": "q.jsonl@[5:9]"}, "--data q.jsonl@[5:9]: q.jsonl@[5:9]: the row range is"),
        ({"--data": "q.jsonl@[5-9]"}, "--data q.jsonl@[5-9]: q.jsonl@[5-9]: cannot read the row"),
        ({"--data": "a/b.jsonl"}, "--data a/b.jsonl: a/b.jsonl is no file"),
        ({"--data": "a b=q.jsonl"}, "--data a b=q.jsonl: 'a b' cannot name metrics"),
        ({"--data": "empty.jsonl"}, "--data empty.jsonl: empty.jsonl"),
        ({"--data": "no_answer.jsonl"}, "--data no_answer.jsonl: no_answer.jsonl"),
        ({"--data": "two.jsonl"}, "has two answers"),
        ({"--n-samples": "0"}, "--n-samples 0 must be at least 1"),
        ({"--temperature": "-1"}, "--temperature -1.0 must be 0 (greedy) or a positive number"),
        ({"--temperature": "nan"}, "--temperature nan must be 0"),
        ({"--top-p": "0"}, "--top-p 0.0 must be above 0 and at most 1"),
        ({"--preset-sampling": "greedy"}, "--n-samples 32 at temperature 0 would repeat one"),
        ({"--max-response-len": "0"}, "--max-response-len 0 must be at least 1"),
        ({"--verifier": "mth"}, "--verifier mth: unknown verifier 'mth' (did you mean 'math'?)"),
        ({"--verifier": "coin_flip", "--require-value": ""}, "--verifier coin_flip: "),
        ({"--verifier": "coin_flip", "--no-symbolic": ""}, "--verifier coin_flip: "),
        ({"--correct-threshold": "0.5"}, "--verifier math: verifier 'math' does not take"),
        ({"--correct-threshold": "0"}, "--correct-threshold 0.0 must be above 0 and at most 1"),
        ({"--instruction": "Think."}, "{problem}"),
        ({"--n-sample": "4"}, "--n-sample is no flag (did you mean '--n-samples'?)"),
    ],
)
def test_refusals(
    changes: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = {**prepared(tmp_path), **changes}
    before = sorted(tmp_path.rglob("*"))
    begin = time.monotonic()
    argv = [word for pair in flags.items() for word in pair if word]
    assert main(["eval", *argv]) == 2
    assert time.monotonic() - begin < 5
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.startswith("megacurl: ")
    assert captured.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_all_bad_flags_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["eval", "--model", "absent", "--data", "q.jsonl", "--output", str(tmp_path)]
    assert main([*argv, "--n-samples", "0", "--top-p", "2"]) == 2
    assert capsys.readouterr().err.count("megacurl: ") == 4


@pytest.mark.parametrize(
    ("preset", "temperature", "top_p", "sampling"),
    [
        ("vapo", None, None, (1.0, 0.7)),
        ("r1", None, None, (0.6, 0.95)),
        ("greedy", None, None, (0.0, 1.0)),
        ("r1", 0.0, None, (0.0, 0.95)),
        ("vapo", None, 1.0, (1.0, 1.0)),
    ],
)
def test_flags_win_over_the_preset(
    preset: str, temperature: float | None, top_p: float | None, sampling: tuple[float, float]
) -> None:
    arguments = EvalArguments(
        "m",
        ("q",),
        "o",
        preset_sampling=preset,  # type: ignore[arg-type]
        temperature=temperature,
        top_p=top_p,
    )
    assert arguments.sampling == sampling


def test_flags_of_the_math_verifier() -> None:
    plain, exact = EvalArguments("m", ("q",), "o"), EvalArguments("m", ("q",), "o", symbolic=False)
    assert (plain.verifier_options, exact.verifier_options) == ({}, {"symbolic": False})
    graded = EvalArguments("m", ("q",), "o", verifier="list_answers", correct_threshold=0.5)
    assert graded.verifier_options == {"correct_threshold": 0.5}


def test_slices_and_several_sets_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)
    rows = [QUESTION.replace("q1", f"q{i}").replace("1+1", f"1+{i}") for i in range(5)]
    (tmp_path / "many.jsonl").write_text("".join(rows))
    sets = read_inputs(EvalArguments("model", ("many.jsonl@[1:3]", "x=q.jsonl"), "out"))
    assert [(s.spec.name, [p.id for p in s.prompts]) for s in sets] == [
        ("many", ["q1", "q2"]),
        ("x", ["q1"]),
    ]
