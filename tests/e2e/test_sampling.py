# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sampling rules in whole runs: smaller batches, none at all, replay, and exact resumption."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.schema import Config
from megacurl.observe.sinks.jsonl import read_rows
from megacurl.recording import rollout_path
from tests import jobs
from tests.e2e.test_resume import config_of, questions, without_times
from tests.world import World


def config(tiny_model: Callable[[str], Path], folder: Path, preset: str, **flat: Any) -> Config:
    flat = {"train_iters": 5, "critic_warmup_iters": 0, "export_hf": False, **flat}
    return config_of(
        tiny_model("qwen2-tied"), questions(folder), folder / "run", preset=preset, **flat
    )


def rows_of(folder: Path) -> list[dict[str, float]]:
    return without_times(read_rows(folder / "run" / "metrics.jsonl"))[1:]


@pytest.mark.parametrize("preset", ["dapo", "vcrl", "cvpo"])
def test_a_rule_fills_the_batch_or_trains_on_less(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, preset: str
) -> None:
    """With two responses to a question half of the groups teach nothing."""
    rule = {"dapo": "dynamic"}.get(preset, "vcrl")
    flat: dict[str, Any] = {"n_samples_per_prompt": 2, "sampling": rule, "vcrl_kappa": (0.3, 0.8)}
    run = config(tiny_model, tmp_path, preset, save_rollouts=str(tmp_path / "rollouts"), **flat)
    world(2).run(jobs.run_training, run)
    rows = rows_of(tmp_path)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    trained = [row for row in rows if "actor/grad_norm" in row]
    assert trained
    if rule == "dynamic":
        assert all(row["rollout/mixed_groups"] == 1.0 for row in trained)
        assert any(row["sampling/rounds"] > 1 for row in rows)
    else:
        assert any(row["sampling/replayed"] > 0 for row in rows)
        assert all(row["sampling/shortfall"] + row["sampling/replayed"] <= 4 for row in rows)
    assert all(row["sampling/responses"] >= 8 for row in rows)


def test_a_step_without_a_question_leaves_the_policy_alone(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """An untrained model answers no sum, so every group is all wrong."""
    flat = {"verifier": "math", "dynamic_max_rounds": 2, "train_iters": 2}
    run = config(tiny_model, tmp_path, "dapo", **flat)
    world(1).run(jobs.run_training, run)
    for row in rows_of(tmp_path):
        assert row["sampling/shortfall"] == 4.0
        assert row["sampling/rounds"] == 2.0
        assert row["sampling/accuracy"] == 0.0
        assert row["sync/version"] == 0
        assert "actor/loss" not in row


@pytest.mark.parametrize("size", [1, 4])
def test_ranks_without_a_response_keep_the_others_company(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, size: int
) -> None:
    """One question with two responses on four data parallel ranks."""
    flat = {"n_samples_per_prompt": 2, "rollout_batch_size": 1, "global_batch_size": None}
    run = config(tiny_model, tmp_path, "vcrl", sampling="uniform", train_iters=3, **flat)
    world(size).run(jobs.run_training, run)
    rows = rows_of(tmp_path)
    assert all(row["rollout/length_mean"] > 0 for row in rows)
    mixed = [row for row in rows if row["rollout/mixed_groups"] == 1.0]
    assert all(row["actor/grad_norm"] > 0 for row in mixed)


@pytest.mark.parametrize("preset", ["vcrl", "dapo"])
def test_a_resumed_run_has_the_same_bank_and_the_same_next_batch(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, preset: str
) -> None:
    flat: dict[str, Any] = {"n_samples_per_prompt": 2, "save_interval": 3}
    whole = config(tiny_model, tmp_path, preset, save_rollouts=str(tmp_path / "first"), **flat)
    world(2).run(jobs.run_training, whole)
    (tmp_path / "again").mkdir()
    checkpoint = tmp_path / "run" / "checkpoints" / "step_000003"
    again = config(
        tiny_model,
        tmp_path / "again",
        preset,
        save_rollouts=str(tmp_path / "second"),
        load=str(checkpoint),
        **flat,
    )
    world(2).run(jobs.run_training, again)
    assert (
        without_times(read_rows(tmp_path / "again" / "run" / "metrics.jsonl"))
        == rows_of(tmp_path)[3:]
    )
    for step in (3, 4):
        files = [rollout_path(tmp_path / name, step) for name in ("first", "second")]
        assert files[0].exists() == files[1].exists()
        assert not files[0].exists() or files[0].read_bytes() == files[1].read_bytes()
    ends = [
        json.loads((folder / "run" / "checkpoints" / "step_000005" / "run.json").read_text())
        for folder in (tmp_path, tmp_path / "again")
    ]
    assert ends[0]["rollouts"] == ends[1]["rollouts"]
    assert ends[0]["cursor"] == ends[1]["cursor"]
    assert bool(ends[0]["rollouts"]["rule"]) == (preset == "vcrl")
