# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Gloo worlds that live for the whole test session and are sent work.

Importing megatron.core takes seconds in every process, so a world is started once per size. A job
is a module-level function; every rank calls it with the same arguments and the parent gets their
results in order. A rank that fails or a world that does not answer in time ends with a clear
error, and the next job gets a fresh world.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

_SPAWN = multiprocessing.get_context("spawn")


class World:
    """``size`` processes joined in a gloo group."""

    def __init__(self, size: int, timeout_s: float = 600.0) -> None:
        self.size, self.timeout_s = size, timeout_s
        self._ranks: list[tuple[Any, Connection]] = []

    def run(self, job: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Any]:
        """Call ``job`` on every rank; results in rank order.

        Raises:
            AssertionError: with the traceback of every rank that failed.
        """
        if not self._ranks:
            self._start()
        for _, pipe in self._ranks:
            pipe.send((job, args, kwargs))
        deadline = time.monotonic() + self.timeout_s
        answers = []
        for rank, (process, pipe) in enumerate(self._ranks):
            if not pipe.poll(max(deadline - time.monotonic(), 0.0)):
                answers.append(
                    (False, f"no answer in {self.timeout_s} s (alive: {process.is_alive()})")
                )
                deadline = min(deadline, time.monotonic() + 2.0)  # the others had their time
                continue
            try:
                answers.append(pipe.recv())
            except EOFError:
                answers.append((False, f"the process ended with code {process.exitcode}"))
            if not answers[rank][0]:
                deadline = min(deadline, time.monotonic() + 5.0)
        failures = [f"rank {r}: {text}" for r, (ok, text) in enumerate(answers) if not ok]
        if failures:
            self.close()
            raise AssertionError("\n".join(failures))
        return [result for _, result in answers]

    def _start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        for rank in range(self.size):
            ours, theirs = _SPAWN.Pipe()
            process = _SPAWN.Process(target=_serve, args=(rank, self.size, port, theirs))
            process.start()
            theirs.close()
            self._ranks.append((process, ours))

    def kill(self) -> None:
        """SIGKILL to every rank, as a failing machine would."""
        for process, pipe in self._ranks:
            process.kill()
            process.join()
            pipe.close()
        self._ranks = []

    def close(self) -> None:
        """End the processes that this world started."""
        for _, pipe in self._ranks:
            pipe.close()  # a rank that waits for work ends by itself then
        deadline = time.monotonic() + 5.0
        for process, _ in self._ranks:
            process.join(max(deadline - time.monotonic(), 0.1))
            if process.is_alive():
                process.kill()
                process.join()
        self._ranks = []


def _serve(rank: int, size: int, port: int, pipe: Connection) -> None:
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    import torch
    import torch.distributed as dist

    from megacurl.megatron import cpu

    torch.set_num_threads(1)
    cpu.install()
    dist.init_process_group("gloo")
    while True:
        try:
            job, args, kwargs = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            pipe.send((True, job(*args, **kwargs)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))
