# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Live progress on rank 0: a bar in a terminal, one plain line a step in a log file."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from megacurl.observe.step_line import short_duration, step_line

_ETA_STEPS = 10  # response lengths drift, so older steps would mislead
_HEARTBEAT_S = 60.0


class Progress:
    """Show where a run is. Writes to stdout by default; ``enabled`` is true on rank 0 only."""

    def __init__(
        self,
        total_steps: int,
        start_step: int = 0,
        enabled: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``start_step`` is the number of steps done before (of the loaded checkpoint).

        Raises ValueError unless 0 <= start_step <= total_steps.
        """
        if not 0 <= start_step <= total_steps:
            raise ValueError(f"start_step={start_step} is not in 0..total_steps={total_steps}")
        self._total = total_steps
        self._clock = clock
        self._last_time = clock()
        self._durations: deque[float] = deque(maxlen=_ETA_STEPS)
        self._display = _open_display(total_steps, start_step, enabled, stream, clock)

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Report step ``step`` (counted from 1) as done, with its schema metrics."""
        now = self._clock()
        seconds = metrics.get("time/step", math.nan)
        self._durations.append(seconds if math.isfinite(seconds) else now - self._last_time)
        self._last_time = now
        eta_s = sum(self._durations) / len(self._durations) * max(self._total - step, 0)
        self._display.advance(step, eta_s)
        self._display.line(step_line(step, self._total, metrics, eta_s))

    def note(self, text: str) -> None:
        """Print a message of its own; control characters in it are replaced."""
        self._display.line(_printable(text))

    def sub(self, description: str, done: int, total: int) -> None:
        """Report long work inside a step: ``done`` of ``total`` items.

        A terminal shows a second bar until all is done or the step ends; a log file gets a line a
        minute at most. Cheap enough to call for every item.
        """
        self._display.sub(_printable(description), done, total)

    def close(self) -> None:
        """Give the terminal back. May be called again."""
        self._display.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Display(Protocol):
    def advance(self, step: int, eta_s: float) -> None: ...

    def line(self, text: str) -> None: ...

    def sub(self, description: str, done: int, total: int) -> None: ...

    def close(self) -> None: ...


class _Silent:
    def advance(self, step: int, eta_s: float) -> None:
        pass

    def line(self, text: str) -> None:
        pass

    def sub(self, description: str, done: int, total: int) -> None:
        pass

    def close(self) -> None:
        pass


class _Plain:
    """Whole lines of text, nothing else."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._heartbeat = clock()

    def advance(self, step: int, eta_s: float) -> None:
        self._heartbeat = self._clock()

    def line(self, text: str) -> None:
        # A log opened under LANG=C is ASCII: a note with other letters must not end the run.
        encoding = self._stream.encoding or "utf-8"
        safe = text.encode(encoding, errors="replace").decode(encoding)
        self._stream.write(safe + "\n")
        self._stream.flush()

    def sub(self, description: str, done: int, total: int) -> None:
        now = self._clock()
        if now - self._heartbeat >= _HEARTBEAT_S:
            self._heartbeat = now
            self.line(f"  {description} {done}/{total}")

    def close(self) -> None:
        pass


class _Live:
    """Bars at the bottom of a terminal, lines above them."""

    def __init__(self, console: Console, total_steps: int, start_step: int) -> None:
        self._progress = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[eta]}", markup=False),
            console=console,
        )
        self._steps = self._progress.add_task(
            "steps", total=total_steps, completed=start_step, eta=""
        )
        self._sub = self._progress.add_task("", total=None, visible=False, eta="")
        self._progress.start()

    def advance(self, step: int, eta_s: float) -> None:
        eta = f"ETA {short_duration(eta_s)}"
        self._progress.update(self._steps, completed=step, eta=eta)
        self._progress.update(self._sub, visible=False)

    def line(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def sub(self, description: str, done: int, total: int) -> None:
        begins = not self._progress.tasks[self._sub].visible
        if begins or done == 0:
            self._progress.reset(self._sub)
        self._progress.update(
            self._sub,
            description=description,
            completed=done,
            total=total,
            visible=done < total,
            refresh=begins,
        )

    def close(self) -> None:
        self._progress.update(self._sub, visible=False)
        self._progress.stop()


def _open_display(
    total_steps: int,
    start_step: int,
    enabled: bool,
    stream: TextIO | None,
    clock: Callable[[], float],
) -> _Display:
    if not enabled:
        return _Silent()
    file = sys.stdout if stream is None else stream
    console = Console(file=file)
    # FORCE_COLOR makes rich call a file a terminal, hence isatty as well.
    if file.isatty() and console.is_terminal and not console.is_dumb_terminal:
        return _Live(console, total_steps, start_step)
    return _Plain(file, clock)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
