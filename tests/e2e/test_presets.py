# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every preset, and the options that change the loop, run through whole steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.load import resolve_defaults
from megacurl.config.presets import PRESETS
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


def check_diagnostics(rows: list[dict[str, float]], has_critic: bool, same_rewards: bool) -> None:
    """Everything is there, nothing of the critic's without one, and the parts make a whole."""
    row = rows[-1]
    mass = {name.rpartition("/")[2]: row[name] for name in row if name.startswith("advantage/")}
    assert set(mass) == {"correct", "wrong", "hard", "medium", "easy"}
    assert mass["correct"] + mass["wrong"] == pytest.approx(1.0)
    assert mass["hard"] + mass["medium"] + mass["easy"] == pytest.approx(1.0)
    assert 0 < row["cvpo/weight_ess"] <= 1 + 1e-12
    spent = [row["compute/total"] for row in rows]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(spent[0] + 2 * sum(row["time/step"] for row in rows[1:]))
    assert row["compute/train"] == pytest.approx(2 * sum(row["time/train"] for row in rows[1:]))
    shares = [row[name] for name in row if name.startswith("critic/reliability_share/")]
    assert (len(shares), sum(shares)) == ((10, pytest.approx(1.0)) if has_critic else (0, 0))
    for name in (
        *("critic/brier", "critic/brier_end", "critic/calibration_error"),
        *("cvpo/sigma_entropy_corr", "cvpo/sigma_entropy_corr_within"),
    ):
        assert (name in row) == has_critic, name
    for name in ("critic/brier_skill", "critic/ev_position/q1", "critic/ev_position/q4"):
        assert (name in row) == (has_critic and not same_rewards), name


@pytest.mark.parametrize("preset", PRESETS)
def test_preset(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, preset: str
) -> None:
    has_critic = resolve_defaults(preset).algorithm.use_critic
    warmup = {"critic_warmup_iters": 1} if has_critic else {}
    rows = train(world, tiny_model("qwen2-tied"), tmp_path, preset=preset, **warmup)
    row = rows[-1]
    assert row["actor/grad_norm"] > 0
    assert row["sync/version"] == 3 - has_critic
    assert any(name.startswith("critic/") for name in row) == has_critic
    assert ("cvpo/sigma_mean" in row) == has_critic
    if has_critic:
        assert row["critic/grad_norm"] > 0
        assert (row["cvpo/w_s_mean"] != 1.0) == (preset in ("cvpo", "cvpo_stochasticity"))
    # An untrained model's responses are all truncated, which is worth 0 to ORZ, as a wrong one is.
    check_diagnostics(rows, has_critic, same_rewards=preset == "orz")
    weighted = preset in ("cvpo", "cvpo_stochasticity", "cvpo_curriculum")
    assert (row["cvpo/weight_ess"] < 1.0) == weighted
    assert (row["cvpo/w_d_mean"] != 1.0) == (preset in ("cvpo", "cvpo_curriculum"))
    checkpoint = tmp_path / "run" / "checkpoints" / "step_000003"
    assert (checkpoint / "critic").exists() == has_critic


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
