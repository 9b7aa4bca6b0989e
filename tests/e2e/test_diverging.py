# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Runs that diverge: exit code 3, what happened, where to go on, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from megacurl.observe.sinks.jsonl import read_rows
from tests.e2e.bad_inputs import Place
from tests.e2e.test_resume import questions
from tests.isolated import run_command

ROOT = Path(__file__).parents[2]
PROBABILITIES = "8 of 8 responses ended in non-finite probabilities"
CRITIC = "the critic's gradient norm is nan"


@pytest.fixture
def place(tiny_model: Callable[[str], Path], tmp_path: Path) -> Place:
    place = Place(tmp_path / "place")
    place.root.mkdir()
    place.model.symlink_to(tiny_model("qwen2-tied"))
    questions(place.root)
    return place


@pytest.mark.parametrize(("flag", "happened"), [("--lr", PROBABILITIES), ("--critic-lr", CRITIC)])
def test_without_a_checkpoint(place: Place, tmp_path: Path, flag: str, happened: str) -> None:
    done = run_command(place.argv("--train-iters", "3", flag, "1e20"), tmp_path / "out")
    assert done.code == 3
    first, second = done.errors.splitlines()
    assert first.startswith(f"megacurl: the run has diverged after step 1: {happened}")
    assert second.startswith("megacurl: it has no checkpoint: start again with a lower --lr")
    assert [row["step"] for row in read_rows(place.run / "metrics.jsonl")] == [0, 1]


def test_going_back_to_a_checkpoint_from_before(place: Place, tmp_path: Path) -> None:
    """The newest one is of a model that is broken already, and still finite."""
    saving = ("--save-interval", "1", "--train-iters")
    assert run_command(place.argv(*saving, "2"), tmp_path / "good").code == 0
    load = ("--load", str(place.run))
    done = run_command(place.argv(*saving, "5", *load, "--lr", "1e20"), tmp_path / "bad")
    assert done.code == 3
    assert "Traceback" not in done.errors
    newest, before = (place.run / "checkpoints" / f"step_00000{step}" for step in (3, 2))
    assert f"go on from {newest} with a lower --lr (it was 1e+20)" in done.errors
    assert f"if that diverges at once, go back further: {before.name}\n" in done.errors

    lower = ("--config", str(place.run / "config.yaml"), "--lr", "1e-6")
    again = ["train", *lower, "--load", str(newest)]
    assert run_command(again, tmp_path / "again").code == 3
    back = ["train", *lower, "--load", str(before), "--train-iters", "4"]
    assert run_command(back, tmp_path / "back").code == 0
    assert [row["step"] for row in read_rows(place.run / "metrics.jsonl")] == [0, 1, 2, 3, 4]


def test_all_ranks_leave_with_one_message(place: Place) -> None:
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    flags = ("--pipeline-model-parallel-size", "2", "--train-iters", "3", "--critic-lr", "1e20")
    done = subprocess.run(
        [sys.executable, "-m", *launcher, "-m", "megacurl", *place.argv(*flags)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.count(f"megacurl: the run has diverged after step 1: {CRITIC}") == 1
    assert "exitcode  : 3" in done.stderr
    assert "FloatingPointError" not in done.stderr
