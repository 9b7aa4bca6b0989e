# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Atomic files and directories: whole or absent, whatever goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from megacurl.utils.files import (
    atomic_directory,
    atomic_write_json,
    atomic_write_text,
    replaced_directory,
)


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_is_replaced_whole_and_parents_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.txt"
    atomic_write_text(path, "first, long content\n")
    atomic_write_text(path, "zwei äöü\n")
    assert path.read_text(encoding="utf-8") == "zwei äöü\n"
    assert listing(path.parent) == ["b.txt"]


def test_failed_replace_keeps_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        atomic_write_text(tmp_path / "taken", "text")
    assert listing(tmp_path) == ["taken"]


def test_unencodable_text_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    atomic_write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        atomic_write_text(path, "lone surrogate \ud800")
    assert path.read_text() == "old"
    assert listing(tmp_path) == ["x.txt"]


def test_the_umask_decides_the_permissions(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        atomic_write_text(tmp_path / "x", "")
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": object()}])
def test_json_that_no_reader_could_parse_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"x\.json"):
        atomic_write_json(tmp_path / "x.json", value)
    assert listing(tmp_path) == []


def test_json_round_trip(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None], "a": "ü"}
    atomic_write_json(tmp_path / "x.json", value)
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert text.endswith("}\n")


def test_directory_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "step_5"
    with atomic_directory(target) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "w.bin").write_bytes(b"123")
        assert not target.exists()
    assert (target / "sub" / "w.bin").read_bytes() == b"123"
    assert listing(target.parent) == ["step_5"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), atomic_directory(tmp_path / "out") as folder:
        (folder / "half").write_text("x")
        raise error
    assert listing(tmp_path) == []


def test_existing_content_is_refused_and_kept(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "precious").write_text("x")
    with pytest.raises(FileExistsError, match="already exists"), atomic_directory(target):
        pytest.fail("the body must not run")
    assert listing(target) == ["precious"]


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    with atomic_directory(target) as folder:
        (folder / "a").write_text("x")
    assert listing(target) == ["a"]


def test_a_target_made_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(FileExistsError), atomic_directory(target) as folder:
        (folder / "mine").write_text("x")
        target.mkdir()
        (target / "theirs").write_text("y")
    assert listing(target) == ["theirs"]
    assert listing(tmp_path) == ["out"]


def test_a_killed_writer_leaves_no_target_and_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    target = tmp_path / "out"
    script = (
        "import os, signal, sys\n"
        "from megacurl.utils.files import atomic_directory\n"
        "with atomic_directory(sys.argv[1]) as folder:\n"
        "    (folder / 'half').write_text('x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(target)], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert listing(tmp_path) == [".out.partial"]
    with atomic_directory(target) as folder:
        (folder / "whole").write_text("y")
    assert listing(tmp_path) == ["out"]
    assert listing(target) == ["whole"]


def test_replaced_directory_swaps_only_a_complete_one(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for text in ("first", "second"):
        with replaced_directory(target) as folder:
            (folder / "file").write_text(text)
        assert (target / "file").read_text() == text
    with pytest.raises(RuntimeError), replaced_directory(target) as folder:
        (folder / "file").write_text("broken")
        raise RuntimeError
    assert (target / "file").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
