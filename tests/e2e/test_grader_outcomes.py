# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a run logs and records of responses that were not simply right or wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from megacurl.observe.sinks.jsonl import read_rows
from megacurl.recording import rollout_path
from tests.e2e import grader_jobs
from tests.e2e.test_resume import config_of, questions
from tests.world import World

OUTCOMES = ("rollout/accuracy", "reward/unparsed", "reward/timeout", "reward/error")


@pytest.mark.parametrize("size", [1, 2])
def test_every_outcome_is_logged_and_recorded(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, size: int
) -> None:
    """Of 7 questions one is answered right, one not at all, one comparison is given up, and the
    grader raises on one: on both ranks of a world of two, and in a replay too."""
    flat = {
        "verifier": "every_outcome",
        "train_iters": 1,
        "rollout_batch_size": 7,
        "n_samples_per_prompt": 2,
        "global_batch_size": 14,
        "critic_warmup_iters": 0,
        "save_interval": None,
        "export_hf": False,
    }
    model, data, rollouts = tiny_model("qwen2-tied"), questions(tmp_path), tmp_path / "rollouts"
    config = config_of(model, data, tmp_path / "run", save_rollouts=str(rollouts), **flat)
    world(size).run(grader_jobs.run_training, config)

    row = read_rows(tmp_path / "run" / "metrics.jsonl")[-1]
    assert {name: row[name] for name in OUTCOMES} == pytest.approx(dict.fromkeys(OUTCOMES, 1 / 7))
    table = pq.read_table(rollout_path(rollouts, 0)).to_pylist()
    errors = {entry["prompt_id"]: entry["error"] for entry in table}
    assert errors == {"q0": grader_jobs.ERROR, **{f"q{i}": None for i in range(1, 7)}}

    config = config_of(model, data, tmp_path / "again", replay_rollouts=str(rollouts), **flat)
    world(size).run(grader_jobs.run_training, config)
    replayed = read_rows(tmp_path / "again" / "metrics.jsonl")[-1]
    assert all(replayed[name] == row[name] for name in OUTCOMES)
