# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Runs whose verifier gives partial credit: rewards, W_S, the sampling rules and a replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from megacurl.curriculum.group_variance import group_variance
from megacurl.observe.sinks.jsonl import read_rows
from megacurl.recording import rollout_path
from tests.e2e import graded_jobs
from tests.e2e.test_resume import config_of, without_times
from tests.world import World


def train(
    world: Callable[[int], World], model: Path, folder: Path, **flat: Any
) -> list[dict[str, float]]:
    """Rows of the steps of a run in ``folder`` that is graded by the list of digits."""
    folder.mkdir(exist_ok=True)
    flat = {"train_iters": 3, "verifier": "digits_of_bytes", "critic_warmup_iters": 0, **flat}
    config = config_of(
        model, graded_jobs.questions(folder), folder / "run", export_hf=False, **flat
    )
    world(2).run(graded_jobs.run_training, config)
    return without_times(read_rows(folder / "run" / "metrics.jsonl"))[1:]


def recorded(folder: Path, step: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(rollout_path(folder, step)).to_pylist()
    return rows


def groups_of(rows: list[dict[str, Any]], name: str) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(row["prompt_id"], []).append(row[name])
    return groups


def test_cvpo_with_graded_rewards_and_w_s(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    model, saved = tiny_model("qwen2-tied"), tmp_path / "rollouts"
    flat: dict[str, Any] = {"correct_threshold": 0.5, "save_interval": None}
    rows = train(world, model, tmp_path / "a", ws_outcome="score", save_rollouts=str(saved), **flat)
    for step, row in enumerate(rows):
        responses = recorded(saved, step)
        scores = [r["score"] for r in responses]
        assert any(0 < score < 1 for score in scores)
        assert all(r["correct"] == (r["score"] >= 0.5) for r in responses)
        assert all(r["reward"] == pytest.approx(2 * r["score"] - 1) for r in responses)
        assert row["rollout/score_mean"] == pytest.approx(sum(scores) / len(scores))
        assert row["rollout/accuracy"] == sum(s >= 0.5 for s in scores) / len(scores)
        assert row["reward/error"] == 0
        assert row["actor/grad_norm"] > 0
    # The critic starts from V = 0, so no response has a spread: W_S is 1.15 s + 0.85 (1 - s).
    first = rows[0]
    assert first["cvpo/w_s_mean"] == pytest.approx(0.85 + 0.3 * first["rollout/score_mean"])

    flat["replay_rollouts"] = str(saved)
    replayed = train(world, model, tmp_path / "b", ws_outcome="score", **flat)
    assert replayed == rows
    (binary,) = train(world, model, tmp_path / "c", **{**flat, "train_iters": 1})
    assert binary["cvpo/w_s_mean"] == pytest.approx(0.85 + 0.3 * first["rollout/accuracy"])
    assert binary["rollout/reward_mean"] == first["rollout/reward_mean"]
    assert binary["actor/grad_norm"] != first["actor/grad_norm"]


def test_vcrl_keeps_questions_by_the_variance_of_their_scores(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """No response is right, so by verdicts alone there would be nothing to train on."""
    saved, kappa = tmp_path / "rollouts", 0.05
    rows = train(
        world,
        tiny_model("qwen2-tied"),
        tmp_path / "run",
        preset="vcrl",
        vcrl_kappa=(kappa, kappa),
        save_rollouts=str(saved),
    )
    kept = 0
    for step, row in enumerate(rows):
        assert row["rollout/accuracy"] == 0
        groups = groups_of(recorded(saved, step), "score")
        variances = [group_variance(scores, low=0, high=1) for scores in groups.values()]
        assert len(groups) == 4 * row["sampling/kept"] + row["sampling/replayed"]
        assert sum(v > kappa for v in variances) >= 4 * row["sampling/kept"]
        assert row["actor/grad_norm"] > 0
        kept += round(4 * row["sampling/kept"])
    assert 0 < kept < 12, "kappa tells no questions apart here"


def test_dynamic_sampling_keeps_questions_whose_scores_differ(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    saved = tmp_path / "rollouts"
    rows = train(
        world,
        tiny_model("qwen2-tied"),
        tmp_path / "run",
        preset="dapo",
        n_samples_per_prompt=2,
        save_rollouts=str(saved),
    )
    for step, row in enumerate(rows):
        groups = groups_of(recorded(saved, step), "score")
        assert len(groups) == 4 and all(len(set(scores)) == 2 for scores in groups.values())
        assert row["rollout/mixed_groups"] == 1.0
    assert sum(row["sampling/rounds"] for row in rows) > 3
