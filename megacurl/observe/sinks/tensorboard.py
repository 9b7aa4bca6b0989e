# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""RUN/tensorboard: TensorBoard event files, one scalar a metric."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

try:
    from torch.utils.tensorboard.writer import SummaryWriter
except ImportError as error:
    raise ImportError(
        "the tensorboard sink needs the package 'tensorboard': pip install tensorboard, or leave "
        "'tensorboard' out of the sinks"
    ) from error


class TensorBoardSink:
    """Write scalars; a resumed run tells TensorBoard to forget the steps it repeats."""

    def __init__(self, folder: Path, resume_step: int | None) -> None:
        """Open a new event file in ``folder``.

        Raises FileExistsError when a new run (None) finds the events of another.
        """
        if resume_step is None and any(folder.glob("events.out.tfevents.*")):
            raise FileExistsError(
                f"{folder} already holds TensorBoard events; resume that run or give the new one "
                "another run folder"
            )
        purge_step = None if resume_step is None else resume_step + 1
        self._writer = SummaryWriter(str(folder), purge_step=purge_step)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write and flush the metrics of one step; NaN and infinity are kept as they are."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Flush and close the event file."""
        self._writer.close()


def open_sink(run_dir: Path, resume_step: int | None) -> TensorBoardSink:
    """Open ``run_dir``/tensorboard. Raises ImportError without the tensorboard package."""
    return TensorBoardSink(run_dir / "tensorboard", resume_step)
