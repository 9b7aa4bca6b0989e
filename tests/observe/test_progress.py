# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Progress in a log file (plain lines) and in a real pseudo-terminal (a live bar)."""

from __future__ import annotations

import io
import math
import os
import re
import threading
from pathlib import Path
from typing import TextIO

import pytest

from megacurl.observe.progress import Progress
from megacurl.observe.step_line import short_duration, short_number, step_line, time_split

METRICS = {
    "rollout/accuracy": 0.53125,
    "rollout/reward_mean": 0.0625,
    "critic/explained_variance": 0.412,
    "rollout/length_mean": 811.7,
    "time/generate": 30.0,
    "time/log_prob": 5.0,
    "time/train": 12.5,
    "time/sync": 1.0,
    "time/step": 50.0,
    "perf/tokens_per_s": 3120.0,
    "eval/aime24/avg@32": 0.2372,
    "eval/aime24/pass@32": 0.5,
}


def test_a_step_is_one_line() -> None:
    assert step_line(7, 120, METRICS, eta_s=5650.0) == (
        "step   7/120 | acc 0.531 | reward +0.062 | EV 0.412 | len 812 | aime24 avg@32 0.237 | "
        "gen 60% logp 10% train 25% sync 2% | 3.1k tok/s | 50.0s | ETA 1h34m"
    )


def test_missing_and_nonfinite_metrics_do_not_break_the_line() -> None:
    assert step_line(1, 9, {}, eta_s=math.nan) == "step 1/9"
    line = step_line(1, 9, dict.fromkeys(METRICS, math.nan), eta_s=math.inf)
    assert "acc nan" in line
    assert line.endswith("ETA ?")


def test_the_split_is_of_the_step_or_of_what_was_measured() -> None:
    assert time_split({"time/generate": 1.0, "time/step": 4.0}) == {"gen": 0.25}
    assert time_split({"time/generate": 1.0, "time/eval": 1.0}) == {"gen": 0.5}
    assert time_split({"time/generate": 0.0}) == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0s"),
        (59.94, "59.9s"),
        (59.96, "1m00s"),
        (3599.6, "1h00m"),
        (7380, "2h03m"),
        (360000, "4d04h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text


def test_numbers() -> None:
    assert [short_number(x) for x in (812, 3120, 2_400_000)] == ["812", "3.1k", "2.4M"]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_file_gets_whole_lines_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # would make rich draw bars into a file
    clock = Clock()
    with (tmp_path / "log").open("w", encoding="ascii") as stream:
        with Progress(12, start_step=2, stream=stream, clock=clock) as progress:
            progress.note("resumed [bold] \x1b[31m at step 2\r ü")
            for second in range(130):
                clock.now = float(second)
                progress.sub("generate", second, 130)
            progress.step(3, METRICS)
            progress.sub("generate", 0, 130)
        progress.close()
    assert (tmp_path / "log").read_text(encoding="ascii").splitlines() == [
        "resumed [bold] ?[31m at step 2? ?",
        "  generate 60/130",
        "  generate 120/130",
        step_line(3, 12, METRICS, eta_s=9 * 50.0),
    ]


def test_eta_follows_the_last_ten_steps_and_falls_back_on_the_clock() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress(100, stream=stream, clock=clock)
    for step in range(1, 21):
        clock.now += 100.0 if step <= 10 else 2.0
        progress.step(step, {"rollout/accuracy": 0.5})
    lines = stream.getvalue().splitlines()
    assert lines[9].endswith(f"ETA {short_duration(90 * 100.0)}")
    assert lines[19].endswith(f"ETA {short_duration(80 * 2.0)}")
    progress.step(100, {"time/step": 4.0})
    assert stream.getvalue().endswith("ETA 0.0s\n")


def test_other_ranks_stay_silent() -> None:
    stream = io.StringIO()
    with Progress(3, enabled=False, stream=stream) as progress:
        progress.step(1, METRICS)
        progress.sub("generate", 1, 2)
        progress.note("x")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("total", "start"), [(3, 4), (3, -1)])
def test_a_start_outside_the_run_is_refused(total: int, start: int) -> None:
    with pytest.raises(ValueError, match=f"start_step={start} is not in 0..total_steps={total}"):
        Progress(total, start)


class Terminal:
    """A pseudo-terminal whose output is collected."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        self.stream: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self._output = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux answers EIO once the other end is closed
                return
            if not data:
                return
            self._output += data

    def finish(self) -> str:
        self.stream.close()
        self._reader.join(timeout=10)
        os.close(self._master)
        return self._output.decode()


def test_a_terminal_gets_a_live_bar_and_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    progress = Progress(12, start_step=2, stream=terminal.stream)
    progress.sub("generate", 3, 8)
    progress.note("note [not markup]")
    progress.step(3, METRICS)
    progress.sub("generate", 8, 8)
    progress.close()
    progress.close()
    output = terminal.finish()
    assert "\x1b[?25l" in output  # cursor hidden while live ...
    assert output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")  # ... and given back
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    assert "note [not markup]" in text
    assert "generate" in text
    assert "3/8" in text
    assert step_line(3, 12, METRICS, eta_s=9 * 50.0) in text
    assert "3/12" in text
    assert "ETA 7m30s" in text.rsplit("steps", 1)[1]


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    with Progress(2, stream=terminal.stream) as progress:
        progress.step(1, {"rollout/accuracy": 0.5, "time/step": 1.0})
    assert terminal.finish() == "step 1/2 | acc 0.500 | 1.0s | ETA 1.0s\r\n"
