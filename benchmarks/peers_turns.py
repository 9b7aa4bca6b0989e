# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Turns of trainers that live in processes and environments of their own.

All of them are started, then one at a time is told to take some steps while the others wait at a
socket, where they cost nothing. So a busy machine slows all alike, and what is timed are steps in
the middle of real training. Both environments import this file: it needs Python alone.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from peers_plan import Contender, Step

_LOOK_AFTER = 1.0  # seconds of silence after which the other side is looked after
_LAST_LINES = 30
_LAST_WAIT = 300.0  # seconds to save the trained model and leave


class Player:
    """The worker's end, one in every process: ``begin`` and ``end`` around each step."""

    def __init__(self, address: str, name: str, clock: Callable[[], float]) -> None:
        """Connect, which says that the process is ready for its first step."""
        self._line = _Line(socket.socket(socket.AF_UNIX))
        self._line.connect(address)
        self._line.send(name)
        self._clock = clock
        self._left = 0
        self._taken: list[dict[str, float]] = []
        self._start = 0.0

    def begin(self) -> None:
        """Wait for the turn, if the last one is over, and start the clock."""
        if self._left == 0:
            self._left = int(self._line.receive())
        self._start = self._clock()

    def end(self, accuracy: float, length: float) -> None:
        """Stop the clock; after the last step of a turn, hand in all of them."""
        seconds = self._clock() - self._start
        self._taken.append({"seconds": seconds, "accuracy": accuracy, "length": length})
        self._left -= 1
        if self._left == 0:
            self._line.send(self._taken)
            self._taken = []

    def close(self) -> None:
        """Leave."""
        self._line.close()


class Team:
    """A contender's processes, seen from the benchmark."""

    def __init__(
        self,
        contender: Contender,
        command: Sequence[str],
        environment: dict[str, str],
        log: Path,
        listener: socket.socket,
    ) -> None:
        """Start ``command`` and wait until all of its processes are ready.

        Raises RuntimeError with the end of its output if it ends instead.
        """
        self.contender, self.log = contender, log
        self._lines: list[_Line] = []
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        listener.settimeout(_LOOK_AFTER)
        try:
            while len(self._lines) < contender.processes:
                try:
                    line = _Line(listener.accept()[0], self._check)
                except TimeoutError:
                    self._check()
                    continue
                self._lines.append(line)
                if (name := line.receive()) != contender.name:
                    raise RuntimeError(f"{name} came where {contender.name} was waited for")
        except BaseException:
            self.stop()
            raise

    def take(self, steps: int) -> tuple[Step, ...]:
        """Let it take ``steps`` steps; of their seconds those of the slowest process."""
        for line in self._lines:
            line.send(steps)
        taken = [[Step(**step) for step in line.receive()] for line in self._lines]
        return tuple(max(same, key=lambda step: step.seconds) for same in zip(*taken, strict=True))

    def finish(self) -> None:
        """Wait for its end. Raises RuntimeError if it fails, or does not come to one."""
        try:
            code = self._process.wait(_LAST_WAIT)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self.contender.label}: trained, but does not end") from None
        if code != 0:
            raise self._failure()
        self._leave()

    def stop(self) -> None:
        """End it, however far it is."""
        self._leave()
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _leave(self) -> None:
        for line in self._lines:
            line.close()

    def _check(self) -> None:
        if self._process.poll() is not None:
            raise self._failure()

    def _failure(self) -> RuntimeError:
        last = self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        return RuntimeError(
            "\n".join([*last, f"{self.contender.label}: ended with code {self._process.poll()}"])
        )


def listen(folder: Path) -> tuple[socket.socket, str]:
    """A listener in ``folder`` and its address."""
    address = str(folder / "turns")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    return listener, address


class _Line:
    """JSON values, one a line, over a socket."""

    def __init__(self, connection: socket.socket, check: Callable[[], None] | None = None) -> None:
        """``check`` is called while the other side is silent; it raises if there is no use."""
        self._connection, self._check = connection, check
        self._read = b""
        if check is not None:
            connection.settimeout(_LOOK_AFTER)

    def connect(self, address: str) -> None:
        self._connection.connect(address)

    def send(self, value: Any) -> None:
        self._connection.sendall(json.dumps(value).encode() + b"\n")

    def receive(self) -> Any:
        """The next value. Raises EOFError if the other side has left."""
        while b"\n" not in self._read:
            try:
                more = self._connection.recv(1 << 16)
            except TimeoutError:
                more = None
            if self._check is not None and not more:
                self._check()
            if more == b"":
                raise EOFError("the other side has left")
            self._read += more or b""
        line, self._read = self._read.split(b"\n", 1)
        return json.loads(line)

    def close(self) -> None:
        self._connection.close()
