# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Optimizer steps of full and of smaller rollouts."""

from __future__ import annotations

import pytest

from megacurl.config.batches import actor_updates, critic_updates
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
