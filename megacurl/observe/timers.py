# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Named wall-clock timers of one step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from megacurl.observe.schema import check_names


class Timers:
    """``with timers("generate"):`` adds seconds to ``time/generate``.

    Different timers may nest; each counts its own whole time.
    """

    def __init__(
        self,
        synchronize: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``synchronize`` runs before each clock reading; give ``torch.cuda.synchronize`` on a
        GPU, where a call returns before its work is done."""
        self._synchronize = synchronize
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._running: dict[str, float] = {}  # since when

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time the body, also when it raises.

        Raises UnknownMetricError when the schema has no ``time/<name>``, RuntimeError when that
        timer is running already (its time would count twice).
        """
        metric = f"time/{name}"
        check_names([metric])
        if metric in self._running:
            raise RuntimeError(f"timer {name!r} is already running; do not nest it in itself")
        self._running[metric] = self._now()
        try:
            yield
        finally:
            start = self._running.pop(metric)
            self._seconds[metric] = self._seconds.get(metric, 0.0) + self._now() - start

    def pop(self) -> dict[str, float]:
        """Return the seconds by metric name and start over. Raises RuntimeError when one runs."""
        if self._running:
            raise RuntimeError(f"timers still running: {', '.join(sorted(self._running))}")
        seconds, self._seconds = self._seconds, {}
        return seconds

    def so_far(self) -> dict[str, float]:
        """Return the seconds by metric name up to now, of running timers too; nothing changes."""
        seconds = dict(self._seconds)
        if self._running:
            now = self._now()
            for metric, start in self._running.items():
                seconds[metric] = seconds.get(metric, 0.0) + now - start
        return seconds

    def _now(self) -> float:
        if self._synchronize is not None:
            self._synchronize()
        return self._clock()
