# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Where metrics go. Each module of this package is a sink named like its file.

To add one, add a file with ``open_sink(run_dir: Path, resume_step: int | None) -> Sink``; there is
no list to extend. A sink is imported only when a run asks for it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from megacurl.utils.names import nearest_hint


class Sink(Protocol):
    """An open destination of metrics, used by one process."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Store the metrics of ``step``; they must be durable, or on their way, on return."""

    def close(self) -> None:
        """Flush and release everything; called once, also after an error."""


def sink_names() -> tuple[str, ...]:
    """Return the names of all sinks, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def check_sinks(names: Sequence[str]) -> None:
    """Raise ValueError on an unknown or repeated sink name, without importing any."""
    known = sink_names()
    for name in names:
        if name not in known:
            hint = nearest_hint(name, known)
            raise ValueError(f"unknown sink {name!r}{hint}; known sinks: {', '.join(known)}")
        if names.count(name) > 1:
            raise ValueError(f"sink {name!r} is given {names.count(name)} times; give it once")


def open_sink(name: str, run_dir: Path, resume_step: int | None) -> Sink:
    """Open the sink ``name`` for a run.

    ``resume_step`` is None for a new run, else the last step whose results the run keeps: what the
    sink holds of later steps is dropped. Raises ValueError for an unknown name.
    """
    check_sinks([name])
    module = importlib.import_module(f"{__name__}.{name}")
    return cast(Sink, module.open_sink(run_dir, resume_step))
