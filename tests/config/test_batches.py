# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Optimizer steps of full and of smaller rollouts."""

from __future__ import annotations

import pytest

from megacurl.config.batches import actor_updates, critic_updates, update_measures_old
from megacurl.config.load import parse_args
from megacurl.config.schema import TrainingConfig


@pytest.mark.parametrize(
    ("fields", "actor", "critic"),
    [
        ({}, 1, 1),
        ({"global_batch_size": 8}, 4, 4),
        ({"updates_per_rollout": 3}, 3, 3),
        ({"critic_updates_per_rollout": 12}, 1, 12),
        ({"global_batch_size": 16, "updates_per_rollout": 5}, 2, 2),
        ({"global_batch_size": 16, "critic_global_batch_size": 4}, 2, 8),
        ({"critic_global_batch_size": 32, "critic_updates_per_rollout": 7}, 1, 1),
    ],
)
def test_sizes_win_over_counts_and_the_critic_follows_the_actor(
    fields: dict[str, int], actor: int, critic: int
) -> None:
    training = TrainingConfig(rollout_batch_size=8, n_samples_per_prompt=4, **fields)
    assert (actor_updates(training), critic_updates(training)) == (actor, critic)


def test_a_smaller_rollout_takes_fewer_steps() -> None:
    training = TrainingConfig(rollout_batch_size=8, n_samples_per_prompt=4, global_batch_size=8)
    assert [actor_updates(training, n) for n in (32, 20, 8, 3, 0)] == [4, 3, 1, 1, 1]
    many = TrainingConfig(critic_updates_per_rollout=12)
    assert [critic_updates(many, n) for n in (48, 5, 0)] == [12, 5, 1]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--algorithm cvpo", True),
        ("--algorithm grpo", True),
        ("--algorithm grpo --kl-coef 0.01", True),
        ("--algorithm ppo --kl-coef 0.01", False),
        ("--algorithm ppo --kl-coef 0.01 --kl-placement loss", True),
        ("--algorithm grpo --ppo-epochs 2", False),
        ("--algorithm grpo --updates-per-rollout 2", False),
        ("--algorithm grpo --global-batch-size 64", False),
        ("--algorithm grpo --global-batch-size 128", True),
        ("--algorithm gspo", False),
        ("--algorithm grpo_asyn", False),
        ("--algorithm grpo_asyn --rollout-correction recompute", True),
        ("--algorithm grpo --rollout-correction behavior", False),
        ("--algorithm orz", True),
    ],
)
def test_when_an_update_needs_no_log_probs_before_it(flags: str, expected: bool) -> None:
    base = "--hf-checkpoint m --prompt-data d --run-dir r --rollout-batch-size 16"
    config = parse_args(f"{base} --n-samples-per-prompt 8 {flags}".split())
    assert update_measures_old(config) == expected


def test_a_smaller_rollout_may_need_none_where_a_full_one_does() -> None:
    base = "--hf-checkpoint m --prompt-data d --run-dir r --algorithm dapo --global-batch-size 64"
    config = parse_args(base.split())
    assert [update_measures_old(config, n) for n in (128, 65, 64, 8)] == [False, False, True, True]
