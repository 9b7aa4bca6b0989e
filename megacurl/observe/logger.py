# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The one way metrics leave the trainer: checked against the schema, then to every sink."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from megacurl.observe.schema import check_names
from megacurl.observe.sinks import Sink, check_sinks, open_sink


class MetricLogger:
    """Send each step's metrics to the sinks of a run; does nothing when not enabled.

    Rank 0 is the enabled one. The others check their arguments too, so that a wrong sink name
    stops all ranks and not one of them.
    """

    def __init__(
        self, run_dir: str | Path, sinks: Sequence[str], resume_step: int | None, enabled: bool
    ) -> None:
        """Open the sinks.

        ``resume_step``: None for a new run; else the step of the loaded checkpoint, and whatever
        was logged of later steps is dropped (-1 drops everything: start over in the same folder).
        Raises ValueError (unknown sink), FileExistsError (new run, folder with metrics) and
        ImportError (package of a sink missing); then no sink stays open.
        """
        check_sinks(sinks)
        self._last_step = -1 if resume_step is None else resume_step
        self._enabled = enabled
        self._sinks: list[Sink] = []
        self._stack = ExitStack()
        if not enabled:
            return
        with ExitStack() as stack:
            for name in sinks:
                sink = open_sink(name, Path(run_dir), resume_step)
                stack.callback(sink.close)
                self._sinks.append(sink)
            self._stack = stack.pop_all()

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log all metrics of ``step`` in one call; steps must rise.

        Values are Python or NumPy real numbers, NaN and infinity included. A ``step`` entry is
        dropped when it agrees. Raises UnknownMetricError, TypeError (say, a tensor) and
        ValueError (step not above the last one) before any sink has written.
        """
        if not self._enabled:
            return
        row = _checked_row(step, metrics)
        if step <= self._last_step:
            raise ValueError(
                f"step {step} is logged after step {self._last_step}; log each step once, with all "
                "its metrics, in rising order"
            )
        for sink in self._sinks:
            sink.log(step, row)
        self._last_step = step

    def close(self) -> None:
        """Close every sink, even when one fails to; the failure is raised afterwards."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _checked_row(step: int, metrics: Mapping[str, Any]) -> dict[str, float]:
    check_names(metrics)
    row: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, numbers.Integral):
            row[name] = int(value)
        elif isinstance(value, numbers.Real):
            row[name] = float(value)
        else:
            raise TypeError(
                f"metric {name!r} is a {type(value).__name__}, not a number; use .item() or float()"
            )
    if row.pop("step", step) != step:
        raise ValueError(f"metric 'step' is {metrics['step']!r} in the row of step {step}")
    return row
