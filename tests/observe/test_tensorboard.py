# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""TensorBoard files as TensorBoard itself reads them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from megacurl.observe.sinks.tensorboard import open_sink


def scalars(run_dir: Path, name: str) -> list[tuple[int, float]]:
    events = EventAccumulator(str(run_dir / "tensorboard"), purge_orphaned_data=True)
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


def test_names_and_values_reach_tensorboard_before_close(tmp_path: Path) -> None:
    sink = open_sink(tmp_path, None)
    sink.log(0, {"eval/aime24/avg@32": 0.25, "actor/loss": 1.0})
    sink.log(1, {"actor/loss": math.nan})
    assert scalars(tmp_path, "eval/aime24/avg@32") == [(0, 0.25)]
    second = scalars(tmp_path, "actor/loss")[1]
    assert second[0] == 1
    assert math.isnan(second[1])
    sink.close()


def test_a_resumed_run_shows_each_step_once(tmp_path: Path) -> None:
    first = open_sink(tmp_path, None)
    for step in range(5):
        first.log(step, {"actor/loss": 1.0})
    first.close()
    second = open_sink(tmp_path, 2)
    for step in range(3, 7):
        second.log(step, {"actor/loss": 2.0})
    second.close()
    assert scalars(tmp_path, "actor/loss") == [
        *((step, 1.0) for step in range(3)),
        *((step, 2.0) for step in range(3, 7)),
    ]


def test_a_new_run_does_not_mix_with_another(tmp_path: Path) -> None:
    open_sink(tmp_path, None).close()
    with pytest.raises(FileExistsError, match="resume that run"):
        open_sink(tmp_path, None)
