# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Progress of an evaluation in a log and in a real pseudo-terminal."""

from __future__ import annotations

import io
import os
from contextlib import suppress

import pytest

from megacurl.evaluation.progress import EvalProgress


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_now_and_then_and_the_end() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = EvalProgress(stream=stream, clock=clock)
    progress.begin("aime24")
    for done in range(1, 61):
        clock.now += 1.0
        progress(done, 60)
    progress.end()
    assert stream.getvalue().splitlines() == [
        "aime24: 15/60 responses in 15.0s, ETA 45.0s",
        "aime24: 30/60 responses in 30.0s, ETA 30.0s",
        "aime24: 45/60 responses in 45.0s, ETA 15.0s",
        "aime24: 60/60 responses in 1m00s",
    ]


def test_other_ranks_are_silent() -> None:
    stream = io.StringIO()
    progress = EvalProgress(enabled=False, stream=stream)
    progress.begin("aime24")
    progress(1, 1)
    progress.end()
    assert stream.getvalue() == ""


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as stream:
        progress = EvalProgress(stream=stream)
        progress.begin("aime24[0]")
        progress(30, 60)
        progress.end()
        progress.end()
    written = b""
    with suppress(OSError):  # a terminal whose other end is closed and empty
        while piece := os.read(leader, 1 << 16):
            written += piece
    os.close(leader)
    text = written.decode()
    assert "aime24[0] responses" in text and "30/60" in text
