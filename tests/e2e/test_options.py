# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The options that change the loop, run through whole steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.e2e.test_resume import config_of, questions
from tests.world import World

OPTIONS: dict[str, dict[str, Any]] = {
    "kl in the reward": {"kl_coef": 0.1},
    "kl in the loss": {"kl_coef": 0.1, "kl_placement": "loss", "kl_estimator": "k3"},
    "truncated out": {"overlong_filter": True},
    "bootstrap": {"truncation": "bootstrap"},
    "critic steps": {"critic_global_batch_size": 4, "critic_epochs": 2, "ppo_epochs": 2},
    "uneven steps": {
        "global_batch_size": None,
        "updates_per_rollout": 3,
        "critic_updates_per_rollout": 5,
    },
    "weighted lm": {"positive_lm_weighted": True, "normalize_w": True, "ws_mu": "batch"},
    "prompt mean": {"loss_agg_mode": "prompt-mean-token-mean", "whiten_advantages": "population"},
    "entropy": {"entropy_coef": 0.01, "dual_clip": 3.0, "value_clip": 0.2},
}


def train(
    world: Callable[[int], World], model: Path, folder: Path, **flat: Any
) -> list[dict[str, float]]:
    flat = {"train_iters": 3, "export_hf": False, **flat}
    config = config_of(model, questions(folder), folder / "run", **flat)
    world(2).run(jobs.run_training, config)
    return read_rows(folder / "run" / "metrics.jsonl")


@pytest.mark.parametrize("name", OPTIONS)
def test_option(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    plain = train(world, tiny_model("qwen2-tied"), tmp_path)
    (tmp_path / "option").mkdir()
    rows = train(world, tiny_model("qwen2-tied"), tmp_path / "option", **OPTIONS[name])
    assert rows[1]["rollout/accuracy"] == plain[1]["rollout/accuracy"]  # same first rollout
    last, other = plain[-1], rows[-1]
    changed = {k for k in last if k.startswith(("actor/", "critic/")) and other.get(k) != last[k]}
    assert changed, "the option changed nothing"
    if name == "truncated out":  # so are all responses of an untrained model
        assert other["data/skipped_batches"] == 2
    else:
        assert other["actor/grad_norm"] > 0
