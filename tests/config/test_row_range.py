# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Paths of question files with and without a row range."""

from __future__ import annotations

from pathlib import Path

import pytest

from megacurl.config.row_range import file_problems, split_row_range


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("", slice(None)),
        ("@[2:4]", slice(2, 4)),
        ("@[:5]", slice(5)),
        ("@[5:]", slice(5, None)),
        ("@[-5:-1]", slice(-5, -1)),
        ("@[:]", slice(None)),
    ],
)
def test_ranges(tmp_path: Path, rows: str, expected: slice) -> None:
    file = tmp_path / "q.jsonl"
    file.touch()
    assert split_row_range(f"{file}{rows}") == (file, expected)
    assert file_problems(f"{file}{rows}") == []


@pytest.mark.parametrize("rows", ["@[", "@[0:5", "@[5]", "@[a:b]", "@[-:5]", "@[0:5:2]", "@[1.5:]"])
def test_what_is_no_range(tmp_path: Path, rows: str) -> None:
    file = tmp_path / "q.jsonl"
    file.touch()
    with pytest.raises(ValueError, match=r"write FILE@\[START:STOP\] with whole numbers"):
        split_row_range(f"{file}{rows}")
    (problem,) = file_problems(f"{file}{rows}")
    assert problem.startswith(f"{file}{rows}: cannot read the row range; write FILE@[START:STOP]")


def test_missing_files_and_odd_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent, odd = tmp_path / "absent.jsonl", tmp_path / "odd@[name.jsonl"
    for path in (str(absent), f"{absent}@[0:5]", str(tmp_path)):
        (problem,) = file_problems(path)
        assert problem == f"{path} is no file on this machine; check the path"
    odd.touch()
    assert split_row_range(str(odd)) == (odd, slice(None))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert split_row_range("~/q.jsonl@[:1]") == (tmp_path / "q.jsonl", slice(1))
