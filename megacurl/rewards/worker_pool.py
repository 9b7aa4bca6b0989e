# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A few helper processes that answer yes or no, and are killed when they take too long.

Not multiprocessing: its spawned children import the caller's main module again (here: torch) and
leave a tracker process behind; a pool that can kill a hung worker needs no more than two pipes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

START_SECONDS = 60.0
READY, YES, NO = b"+", b"1", b"0"


class Reply(NamedTuple):
    """answer: None when the worker was given up. seconds: from question to reply."""

    answer: bool | None
    seconds: float


class WorkerPool:
    """At most ``size`` processes of ``python -m module PID``; threads may share it.

    A worker writes READY, then for each line on stdin YES or NO. One that lets ``deadline``
    seconds pass is killed and replaced. Workers start with the first question.
    """

    def __init__(self, module: str, size: int, deadline: float) -> None:
        self.module, self.deadline = module, deadline
        self._slots: queue.Queue[_Worker | None] = queue.Queue()
        for _ in range(size):
            self._slots.put(None)
        self._lock = threading.Lock()
        self._alive: set[_Worker] = set()
        self._closed = False
        # Linux sends the "parent died" signal when the *thread* that started the child ends, so
        # one thread that lives as long as the pool starts them all.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="megacurl-grader")

    def ask(self, line: bytes) -> Reply:
        """The answer to one line (without its end).

        Waits for a free worker first. Raises RuntimeError when workers do not start, or when the
        pool is closed.
        """
        worker = self._slots.get()
        try:
            if worker is None or not worker.running():
                worker = self._replace(worker)
            worker.wait_ready()
            reply = worker.ask(line, self.deadline)
            if reply.answer is None:
                # Replaced at once: it gets ready while the other one works.
                worker = self._replace(worker)
            return reply
        except BaseException:
            self._discard(worker)
            worker = None
            raise
        finally:
            self._slots.put(worker)

    def close(self) -> None:
        """Kill and reap all workers, busy ones too. May be called twice, from any thread."""
        with self._lock:
            self._closed = True
            workers, self._alive = self._alive, set()
        for worker in workers:
            worker.kill()
        self._starter.shutdown(wait=True)

    def _replace(self, worker: _Worker | None) -> _Worker:
        self._discard(worker)
        with self._lock:
            if self._closed:
                raise RuntimeError("the grader's worker processes were closed")
            fresh = self._starter.submit(_Worker, self.module).result()
            self._alive.add(fresh)
        return fresh

    def _discard(self, worker: _Worker | None) -> None:
        if worker is not None:
            with self._lock:
                self._alive.discard(worker)
            worker.kill()


class _Worker:
    def __init__(self, module: str) -> None:
        paths = [path or os.getcwd() for path in sys.path]
        # A fixed hash seed: the order of terms, and so a verdict, is the same in every process.
        environment = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **environment},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._ready = False

    def running(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self) -> None:
        if not self._ready and self._read(START_SECONDS) != READY:
            raise RuntimeError(
                f"a grader process did not start (exit status {self._process.poll()}; its error "
                "is in this run's stderr); install what it needs: pip install math-verify==0.9.0"
            )
        self._ready = True

    def ask(self, line: bytes, deadline: float) -> Reply:
        start, reply = time.monotonic(), None
        with contextlib.suppress(BrokenPipeError):
            self._to.write(line + b"\n")
            reply = self._read(deadline)
        return Reply(None if reply is None else reply == YES, time.monotonic() - start)

    def _read(self, seconds: float) -> bytes | None:
        """One byte; None after `seconds` or when the worker has ended."""
        poll, end = select.poll(), time.monotonic() + seconds
        poll.register(self._from.fileno(), select.POLLIN | select.POLLHUP)
        while (left := end - time.monotonic()) > 0:
            if poll.poll(left * 1000):
                return self._from.read(1) or None
        return None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()
