# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""MetricLogger: the schema gate, the order of steps, and the sinks behind it."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from megacurl.observe import sinks
from megacurl.observe.logger import MetricLogger
from megacurl.observe.schema import UnknownMetricError
from megacurl.observe.sinks.jsonl import read_rows


def test_every_sink_gets_the_row(tmp_path: Path) -> None:
    with MetricLogger(tmp_path, ["jsonl", "tensorboard"], None, enabled=True) as logger:
        logger.log(1, {"actor/loss": 0.5, "step": 1, "sync/version": np.int64(2)})
        logger.log(2, {"actor/loss": np.float32(0.25), "critic/loss": math.nan})
    first, second = read_rows(tmp_path / "metrics.jsonl")
    assert first == {"step": 1, "actor/loss": 0.5, "sync/version": 2}
    assert second["actor/loss"] == 0.25
    assert math.isnan(second["critic/loss"])
    assert any((tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ({"actor/los": 1.0}, UnknownMetricError, "did you mean 'actor/loss'"),
        ({"actor/loss": torch.tensor(1.0)}, TypeError, "'actor/loss' is a Tensor"),
        ({"actor/loss": None}, TypeError, "NoneType"),
        ({"actor/loss": "1.0"}, TypeError, "str"),
        ({"step": 4}, ValueError, "'step' is 4 in the row of step 3"),
    ],
)
def test_a_bad_row_is_refused_before_anything_is_written(
    tmp_path: Path, metrics: dict[str, Any], error: type[Exception], message: str
) -> None:
    with MetricLogger(tmp_path, ["jsonl"], None, enabled=True) as logger:
        with pytest.raises(error, match=message):
            logger.log(3, {"actor/lr": 1.0, **metrics})
        assert (tmp_path / "metrics.jsonl").read_bytes() == b""
        logger.log(3, {"actor/lr": 1.0})


def test_a_step_is_logged_once_and_in_order(tmp_path: Path) -> None:
    with MetricLogger(tmp_path, ["jsonl"], None, enabled=True) as logger:
        logger.log(0, {})
        logger.log(5, {})
        for step in (5, 4):
            with pytest.raises(ValueError, match=f"step {step} is logged after step 5"):
                logger.log(step, {})
    with MetricLogger(tmp_path, ["jsonl"], 3, enabled=True) as logger:
        with pytest.raises(ValueError, match="step 3 is logged after step 3"):
            logger.log(3, {})
        logger.log(4, {})
    assert [row["step"] for row in read_rows(tmp_path / "metrics.jsonl")] == [0, 4]


def test_other_ranks_write_nothing_but_see_the_same_mistakes(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with MetricLogger(run_dir, ["jsonl", "tensorboard"], None, enabled=False) as logger:
        logger.log(1, {"actor/loss": 1.0})
        logger.log(1, {})
    assert not run_dir.exists()
    with pytest.raises(ValueError, match=r"unknown sink 'tensorbord' \(did you mean 'tensorboard'"):
        MetricLogger(run_dir, ["tensorbord"], None, enabled=False)
    with pytest.raises(ValueError, match="'jsonl' is given 2 times"):
        MetricLogger(run_dir, ["jsonl", "jsonl"], None, enabled=False)


SINK_FILE = """
events = []

class Recorder:
    def log(self, step, metrics):
        events.append((step, dict(metrics)))

    def close(self):
        events.append("closed")

def open_sink(run_dir, resume_step):
    events.append((run_dir.name, resume_step))
    return Recorder()
"""

BROKEN_FILE = """
def open_sink(run_dir, resume_step):
    raise OSError("no route to the dashboard")
"""


def test_one_file_adds_a_sink_and_a_failed_opening_closes_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recorder.py").write_text(SINK_FILE)
    (tmp_path / "broken.py").write_text(BROKEN_FILE)
    monkeypatch.setattr(sinks, "__path__", [*sinks.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    try:
        assert set(sinks.sink_names()) == {"broken", "jsonl", "recorder", "tensorboard", "wandb"}
        with MetricLogger(tmp_path / "run", ["recorder"], 6, enabled=True) as logger:
            logger.log(7, {"actor/loss": 1.0})
        events = sys.modules["megacurl.observe.sinks.recorder"].events
        assert events == [("run", 6), (7, {"actor/loss": 1.0}), "closed"]
        events.clear()
        with pytest.raises(OSError, match="no route"):
            MetricLogger(tmp_path / "run", ["recorder", "broken"], None, enabled=True)
        assert events == [("run", None), "closed"]
    finally:
        for name in ("recorder", "broken"):
            sys.modules.pop(f"megacurl.observe.sinks.{name}", None)
            if hasattr(sinks, name):
                delattr(sinks, name)
