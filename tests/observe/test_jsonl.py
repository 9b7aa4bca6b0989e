# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""metrics.jsonl across kills, resumes and values JSON cannot hold."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from megacurl.observe.sinks.jsonl import JsonlSink, read_rows


def write(path: Path, steps: range, resume_step: int | None = None) -> None:
    sink = JsonlSink(path, resume_step)
    for step in steps:
        sink.log(step, {"actor/loss": step / 10})
    sink.close()


def steps_in(path: Path) -> list[float]:
    return [row["step"] for row in read_rows(path)]


def test_rows_are_readable_json_before_close(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    sink = JsonlSink(path, None)
    sink.log(0, {"actor/loss": 0.5, "sync/version": 3})
    assert path.read_text() == '{"step": 0, "actor/loss": 0.5, "sync/version": 3}\n'
    sink.close()


def test_numbers_survive_exactly(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    sink = JsonlSink(path, None)
    values = {"actor/loss": 0.1 + 0.2, "actor/lr": 1e-300, "rollout/reward_mean": -0.0}
    sink.log(1, values)
    sink.close()
    assert read_rows(path) == [{"step": 1, **values}]


def test_nonfinite_values_are_null_with_their_kind_and_come_back(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    sink = JsonlSink(path, None)
    sink.log(1, {"actor/loss": math.nan, "critic/loss": math.inf, "actor/lr": -math.inf})
    sink.close()

    def refuse(token: str) -> float:
        raise AssertionError(f"{token} is not strict JSON")

    raw = json.loads(path.read_text(), parse_constant=refuse)
    assert raw["actor/loss"] is None
    assert raw["nonfinite"] == {"actor/loss": "nan", "critic/loss": "inf", "actor/lr": "-inf"}
    (row,) = read_rows(path)
    assert math.isnan(row["actor/loss"])
    assert (row["critic/loss"], row["actor/lr"]) == (math.inf, -math.inf)
    assert "nonfinite" not in row


def test_resume_drops_later_steps_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(6))
    write(path, range(4, 8), resume_step=3)
    assert steps_in(path) == list(range(8))
    assert [p.name for p in tmp_path.iterdir()] == ["m.jsonl"]


def test_resume_at_minus_one_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(6))
    write(path, range(2), resume_step=-1)
    assert steps_in(path) == [0, 1]


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_torn_last_line_is_repaired_wherever_it_was_cut(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(3))
    whole = path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    path.write_bytes(whole[: len(whole) - min(cut, last)])
    survivors = [0, 1, 2] if cut == 1 else [0, 1]  # only the newline is missing: nothing is lost
    assert steps_in(path) == survivors
    write(path, range(3, 4), resume_step=2)
    assert steps_in(path) == [*survivors, 3]


def test_damage_inside_the_file_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(3))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[1][:9] + "\n" + lines[2])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"m\.jsonl, line 2 is damaged"):
        JsonlSink(path, 2)
    with pytest.raises(ValueError, match="line 2"):
        read_rows(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("row", ["[1]", '{"loss": 1}', '{"step": 1, "nonfinite": ["a"]}', ""])
def test_valid_json_that_is_no_row_is_damage_too(tmp_path: Path, row: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(row + "\n")
    with pytest.raises(ValueError, match="line 1"):
        read_rows(path)


def test_a_new_run_does_not_append_to_another(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, range(3))
    with pytest.raises(FileExistsError, match="up to step 2; resume"):
        JsonlSink(path, None)
    assert steps_in(path) == [0, 1, 2]


def test_an_empty_file_is_a_new_run(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.touch()
    write(path, range(1))
    assert steps_in(path) == [0]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"metrics\.jsonl"):
        read_rows(tmp_path / "m.jsonl")


def test_logged_steps_survive_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from megacurl.observe.sinks.jsonl import JsonlSink\n"
        "sink = JsonlSink(Path(sys.argv[1]), None)\n"
        "for step in range(5):\n"
        "    sink.log(step, {'actor/loss': 1.0})\n"
        'sink._file.write(b\'{"step": 5, "act\')\n'
        "sink._file.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], timeout=60, check=False, env=env
    )
    assert done.returncode == -signal.SIGKILL
    assert not path.read_bytes().endswith(b"\n")
    write(path, range(5, 7), resume_step=4)
    assert steps_in(path) == list(range(7))
