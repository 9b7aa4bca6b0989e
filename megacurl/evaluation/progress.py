# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Progress of an evaluation on stderr: a bar in a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from megacurl.observe.step_line import short_duration

_LINE_S = 15.0


class EvalProgress:
    """Shows the responses of one set after another; ``enabled`` is true on rank 0 only.

    With several ranks the numbers are those of rank 0's share.
    """

    def __init__(
        self,
        enabled: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._enabled, self._clock = enabled, clock
        self._name, self._begin, self._last = "", 0.0, 0.0
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def begin(self, set_name: str) -> None:
        """Start a set."""
        self._name = set_name
        self._begin = self._last = self._clock()
        console = Console(file=self._stream)
        if self._enabled and self._stream.isatty() and not console.is_dumb_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task(f"{set_name} responses", total=None)
            self._bar.start()

    def __call__(self, done: int, total: int) -> None:
        """Report ``done`` of ``total`` responses of the set; cheap enough to call for each."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
            return
        now = self._clock()
        if self._enabled and (done == total or now - self._last >= _LINE_S):
            self._last = now
            spent = now - self._begin
            left = spent / done * (total - done) if done else float("nan")
            eta = "" if done == total else f", ETA {short_duration(left)}"
            self.note(f"{self._name}: {done}/{total} responses in {short_duration(spent)}{eta}")

    def end(self) -> None:
        """Finish the set; may be called again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def note(self, text: str) -> None:
        """Write a line of its own."""
        if self._enabled:
            print(text, file=self._stream, flush=True)
