# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Training one step behind: versions, corrections, mismatch metrics, and exact resumption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from megacurl.config.schema import Config
from megacurl.observe.sinks.jsonl import read_rows
from megacurl.recording import rollout_path
from tests import jobs
from tests.e2e.test_resume import config_of, questions, without_times
from tests.world import World

STEPS = 4


def config(tiny_model: Callable[[str], Path], folder: Path, preset: str, **flat: Any) -> Config:
    folder.mkdir(exist_ok=True)
    settings: dict[str, Any] = {"train_iters": STEPS, "export_hf": False, "save_interval": None}
    data, run = questions(folder), folder / "run"
    return config_of(tiny_model("qwen2-tied"), data, run, preset=preset, **{**settings, **flat})


def rows_of(folder: Path) -> list[dict[str, float]]:
    return without_times(read_rows(folder / "run" / "metrics.jsonl"))


def test_every_batch_is_one_version_old_and_a_resumed_run_has_the_same(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    recorded = tmp_path / "recorded"
    whole = config(tiny_model, tmp_path, "grpo_asyn", save_interval=2, save_rollouts=str(recorded))
    world(2).run(jobs.run_training, whole)
    versions = [
        set(pq.read_table(rollout_path(recorded, step))["version"].to_pylist())
        for step in range(STEPS)
    ]
    assert versions == [{0}, {0}, {1}, {2}]
    rows = rows_of(tmp_path)
    assert [row["sync/version"] for row in rows[1:]] == [1, 2, 3, 4]
    assert rows[1]["mismatch/max_gap"] < 1e-4 < rows[2]["mismatch/max_gap"]
    for row in rows[1:]:
        assert 0 < row["mismatch/ess"] <= 1 + 1e-9
        assert 0 <= row["mismatch/tis_clipped"] <= 1

    checkpoint = tmp_path / "run" / "checkpoints" / "step_000002"
    assert (checkpoint / "ahead.parquet").is_file()
    again = config(tiny_model, tmp_path / "again", "grpo_asyn", load=str(checkpoint))
    world(2).run(jobs.run_training, again)
    assert rows_of(tmp_path / "again") == rows[3:]
    without = config(tiny_model, tmp_path / "on-policy", "grpo", load=str(checkpoint))
    with pytest.raises(AssertionError, match="made one step ahead; give --rollout-lag 1"):
        world(2).run(jobs.run_training, without)


def test_without_a_lag_the_corrections_agree_and_with_one_they_do_not(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    found: dict[tuple[int, str], dict[str, float]] = {}
    for lag in (0, 1):
        for correction in ("decoupled", "behavior", "recompute"):
            folder = tmp_path / f"{correction}{lag}"
            flat = {"rollout_lag": lag, "rollout_correction": correction, "train_iters": 2}
            world(1).run(jobs.run_training, config(tiny_model, folder, "grpo", lr=1e-2, **flat))
            found[lag, correction] = rows_of(folder)[-1]
    name = "actor/grad_norm"
    on_policy = found[0, "recompute"][name]
    for correction in ("decoupled", "behavior"):
        assert found[0, correction][name] == pytest.approx(on_policy, rel=1e-3)
    lagged = [found[1, c][name] for c in ("decoupled", "behavior", "recompute")]
    assert len({round(norm, 6) for norm in lagged}) == 3
