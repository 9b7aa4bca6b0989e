# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Names and files of benchmark sets, as flags give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from megacurl.config.eval_specs import EvalSpec, eval_spec_problems, parse_eval_spec


def problems(*specs: object) -> list[str]:
    return list(eval_spec_problems([str(spec) for spec in specs], "--data"))


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_name_is_given_or_taken_from_the_file(tmp_path: Path) -> None:
    plain = touch(tmp_path / "aime-2024.parquet")
    equals = touch(tmp_path / "lr=1e-6" / "amc23.jsonl")
    specs = {
        str(plain): EvalSpec("aime-2024", str(plain)),
        f"amc={equals}": EvalSpec("amc", str(equals)),
        str(equals): EvalSpec("amc23", str(equals)),
        f"{equals}@[0:5]": EvalSpec("amc23", f"{equals}@[0:5]"),
        f"part={equals}@[-5:]": EvalSpec("part", f"{equals}@[-5:]"),
    }
    assert {spec: parse_eval_spec(spec) for spec in specs} == specs
    assert problems(plain, f"amc={equals}", f"{equals}@[0:5]", f"part={equals}@[-5:]") == []
    assert problems() == []


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("={file}", "''"),
        ("a b={file}", "'a b'"),
        ("a@2={file}", "'a@2'"),
        ("{folder}/odd name.jsonl@[0:5]", "'odd name'"),
    ],
)
def test_names_that_no_metric_can_hold(tmp_path: Path, spec: str, name: str) -> None:
    file = touch(tmp_path / "x.jsonl")
    touch(tmp_path / "odd name.jsonl")
    written = spec.format(file=file, folder=tmp_path)
    (problem,) = problems(written)
    assert problem.startswith(f"--data {written}: {name} cannot name metrics; write NAME=PATH")


def test_missing_files_bad_ranges_and_repeated_names(tmp_path: Path) -> None:
    file = touch(tmp_path / "x.jsonl")
    for spec in (f"y={tmp_path}/y.jsonl", f"y={tmp_path}", "y=", f"y={tmp_path}/y.jsonl@[0:5]"):
        (problem,) = problems(spec)
        path = spec.removeprefix("y=")
        assert problem == f"--data {spec}: {path} is no file on this machine; check the path"
    (problem,) = problems(f"x={file}@[0-5]")
    assert problem.startswith(f"--data x={file}@[0-5]: {file}@[0-5]: cannot read the row range")
    (problem,) = problems(file, f"{file}@[0:5]")
    assert f"{file} are both called 'x'; give one another name as NAME=PATH" in problem


def test_all_problems_at_once(tmp_path: Path) -> None:
    assert len(problems("a b=absent", f"{touch(tmp_path / 'x.jsonl')}@[5]")) == 3
