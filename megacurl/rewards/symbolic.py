# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Algebra for one grading: asks the worker processes, within a budget of time."""

from __future__ import annotations

import atexit
import json
import os
import threading
from functools import lru_cache

from megacurl.rewards.algebraic import to_algebra
from megacurl.rewards.worker_pool import Reply, WorkerPool

WORKERS = 2
# For a worker that hangs without using up its processor time (symbolic_worker.CPU_SECONDS). Long,
# because a busy machine should change no verdict.
DEADLINE_SECONDS = 10.0
# A list of many expressions: after this time no further comparison is begun.
_BUDGET_SECONDS = 1.0


class Algebra:
    """Compares expressions in one grading; ``timed_out`` tells whether any was given up."""

    def __init__(self) -> None:
        self.timed_out = False
        self._spent = 0.0

    def __call__(self, given: str, truth: str) -> bool:
        """True when two normalised texts are equal expressions; False when given up."""
        left, right = to_algebra(given), to_algebra(truth)
        if left is None or right is None:
            return False
        if self.timed_out or self._spent > _BUDGET_SECONDS:
            self.timed_out = True
            return False
        reply = _ask(left, right)
        self._spent += reply.seconds
        self.timed_out = reply.answer is None
        return reply.answer is True


@lru_cache(maxsize=4096)
def _ask(given: str, truth: str) -> Reply:
    # Rollouts of a group repeat their answers; one that hung is not tried again either.
    return _shared_pool().ask(json.dumps([given, truth]).encode())


_lock = threading.Lock()
_pool: WorkerPool | None = None


def _shared_pool() -> WorkerPool:
    global _pool
    with _lock:
        if _pool is None:
            _pool = WorkerPool("megacurl.rewards.symbolic_worker", WORKERS, DEADLINE_SECONDS)
        return _pool


def close_workers() -> None:
    """End the grader's processes, if any; the next comparison that needs one starts new ones.

    Called at exit; also useful before measuring or forking.
    """
    global _pool
    with _lock:
        pool, _pool = _pool, None
    if pool is not None:
        pool.close()


def _forget_in_child() -> None:
    # A forked copy must not talk into its parent's pipes.
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


atexit.register(close_workers)
os.register_at_fork(after_in_child=_forget_in_child)
