# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A run that is killed again and again ends like one that is not: bank, tracker, cursor, batches.

The killed processes are real command lines. Where one of them is shows in its run folder; it is
stopped (SIGSTOP) at the wanted place, and killed only if it still stands there, so that a busy
machine changes how long the test waits and not what it tests.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors.torch import load_file

from megacurl.config.yaml_file import dump_yaml
from megacurl.observe.sinks.jsonl import read_rows
from megacurl.recording import rollout_path
from tests.e2e.test_resume import config_of, questions, without_times
from tests.isolated import start_command

STEPS = 9
SETTINGS: dict[str, Any] = {
    "preset": "cvpo",
    "sampling": "vcrl",
    # The first threshold keeps any mixed group of four, the second only half right ones, so that
    # the bank fills and is then drawn from.
    "vcrl_kappa": (0.7, 0.8),
    "vcrl_kappa_switch": 2,
    "train_iters": STEPS,
    "save_interval": 1,
    "keep_checkpoints": STEPS,
}
PATIENCE_S = 300.0


class Course:
    """A run folder, and the processes that work on it one after the other."""

    def __init__(self, folder: Path, model: Path, data: Path) -> None:
        self.folder, self.run_dir = folder, folder / "run"
        folder.mkdir()
        config = config_of(
            model, data, self.run_dir, save_rollouts=str(folder / "rollouts"), **SETTINGS
        )
        dump_yaml(config, folder / "settings.yaml")
        self.starts = 0

    def start(self) -> BaseProcess:
        """The next process; from the second on it resumes."""
        self.starts += 1
        argv = ["train", "--config", str(self.folder / "settings.yaml")]
        argv += ["--load", str(self.run_dir)] if self.starts > 1 else []
        return start_command(argv, self.folder / f"process{self.starts}")

    def finish(self) -> None:
        process = self.start()
        try:
            process.join(PATIENCE_S)
            assert process.exitcode == 0, self.errors()
        finally:
            process.kill()  # if it hangs

    def kill_at(self, place: Callable[[int], bool], first_step: int) -> int:
        """Kill a process at ``place`` of a step, the first or a later one; return that step."""
        process = self.start()
        try:
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and process.exitcode is None:
                here = [step for step in range(first_step, STEPS) if place(step)]
                if here:
                    stop(process)
                    if place(here[-1]):
                        return here[-1]
                    resume(process)
                time.sleep(0.005)
        finally:
            process.kill()
            process.join()
        raise AssertionError(f"never there; exit code {process.exitcode}: {self.errors()}")

    def errors(self) -> str:
        return (self.folder / f"process{self.starts}" / "stderr").read_text()[-3000:]

    def checkpoint(self, step: int) -> Path:
        return self.run_dir / "checkpoints" / f"step_{step:06d}"

    def state(self, step: int) -> dict[str, Any]:
        """Cursor, tracker, bank and counters after ``step`` steps; not what time they took."""
        state: dict[str, Any] = json.loads((self.checkpoint(step) / "run.json").read_text())
        assert state.pop("compute")["total"] > 0
        return state

    def batch(self, step: int) -> list[dict[str, Any]]:
        """All that was sampled after ``step`` steps: questions, responses, verdicts."""
        rows: list[dict[str, Any]] = pq.read_table(
            rollout_path(self.folder / "rollouts", step)
        ).to_pylist()
        return rows

    def rows(self) -> list[dict[str, float]]:
        return without_times(read_rows(self.run_dir / "metrics.jsonl"))

    # Places, by the number of steps that are done; each lasts until the next file appears.

    def between_steps(self, step: int) -> bool:
        """The checkpoint is complete and the step reported; the next one samples."""
        if not self.saved(step) or self.sampled(step):
            return False
        return any(row["step"] == step for row in read_rows(self.run_dir / "metrics.jsonl"))

    def amid_a_step(self, step: int) -> bool:
        """The next batch is sampled; its update is under way."""
        return self.sampled(step) and not self.writing(step + 1) and not self.saved(step + 1)

    def amid_a_checkpoint(self, step: int) -> bool:
        """A part of the step's checkpoint is written."""
        return self.writing(step) and not self.saved(step)

    def sampled(self, step: int) -> bool:
        return rollout_path(self.folder / "rollouts", step).is_file()

    def saved(self, step: int) -> bool:
        return self.checkpoint(step).is_dir()

    def writing(self, step: int) -> bool:
        return self.checkpoint(step).with_name(f".step_{step:06d}.partial").is_dir()


def stop(process: BaseProcess) -> None:
    """Return when all threads stand still."""
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{process.pid}/task")
    while any(_state(task) not in "tTZX" for task in tasks.iterdir()):
        time.sleep(0.001)


def resume(process: BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)


def _state(task: Path) -> str:
    try:
        return (task / "stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"  # a thread that has ended meanwhile


def test_killed_run_has_the_same_course(tiny_model: Callable[[str], Path], tmp_path: Path) -> None:
    data, model = questions(tmp_path), tiny_model("qwen2-tied")
    whole = Course(tmp_path / "whole", model, data)
    whole.finish()
    killed = Course(tmp_path / "killed", model, data)
    between = killed.kill_at(killed.between_steps, 1)
    amid = killed.kill_at(killed.amid_a_step, between + 1)
    writing = killed.kill_at(killed.amid_a_checkpoint, amid + 2)
    assert killed.writing(writing) and not killed.saved(writing)
    killed.finish()

    assert killed.rows() == whole.rows()
    for step in range(1, STEPS + 1):
        assert killed.state(step) == whole.state(step), f"after step {step}"
        assert killed.batch(step - 1) == whole.batch(step - 1), f"batch of step {step}"
    before, after = (load_file(x.run_dir / "hf" / "model.safetensors") for x in (whole, killed))
    assert all(before[name].equal(after[name]) for name in before)
    check_not_trivial(whole, [between, amid, writing - 1])


def check_not_trivial(course: Course, steps: list[int]) -> None:
    """Where the run was taken up there was something to lose."""
    for step in steps:
        state = course.state(step)
        assert state["rollouts"]["rule"]["bank"]["entries"], step
        assert state["curriculum"]["tracker"]["ids"], step
        assert state["cursor"]["offset"] or state["cursor"]["epoch"], step
    assert sum(row.get("sampling/replayed", 0) for row in course.rows()) > 0
    assert course.rows()[-1]["actor/grad_norm"] > 0
