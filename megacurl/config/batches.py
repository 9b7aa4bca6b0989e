# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What several settings give together: optimizer steps, warm-up, treatment of old responses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from megacurl.config.schema import Config, TrainingConfig


def responses_per_rollout(training: TrainingConfig) -> int:
    """Responses of a full rollout."""
    return training.rollout_batch_size * training.n_samples_per_prompt


def actor_updates(training: TrainingConfig, responses: int | None = None) -> int:
    """Optimizer steps of the actor in one epoch over ``responses`` (default: a full rollout).

    A rollout that is smaller than usual takes fewer steps of ``global_batch_size``, and never more
    steps than it has responses.
    """
    count = responses_per_rollout(training) if responses is None else responses
    size = training.global_batch_size
    updates = training.updates_per_rollout if size is None else math.ceil(count / size)
    return max(min(updates, count), 1)


def critic_updates(training: TrainingConfig, responses: int | None = None) -> int:
    """The same for the critic; as many as the actor's where no setting says otherwise."""
    count = responses_per_rollout(training) if responses is None else responses
    if training.critic_global_batch_size is not None:
        updates = math.ceil(count / training.critic_global_batch_size)
    elif training.critic_updates_per_rollout is not None:
        updates = training.critic_updates_per_rollout
    else:
        return actor_updates(training, responses)
    return max(min(updates, count), 1)


def critic_warmup(config: Config) -> int:
    """First steps of the run that train the critic alone, at most."""
    return config.algorithm.critic_warmup_iters if config.algorithm.use_critic else 0


def rollout_correction(config: Config) -> Literal["decoupled", "behavior", "recompute"]:
    """How responses of older weights are treated, ``auto`` resolved."""
    chosen = config.algorithm.rollout_correction
    if chosen == "auto":
        return "decoupled" if config.rollout.rollout_lag else "recompute"
    return chosen


def update_measures_old(config: Config, responses: int | None = None) -> bool:
    """Whether the actor's update on ``responses`` can take its own log-probs for the old ones.

    With one optimizer step they are those of its forward pass. They are needed before it where a
    penalty in the reward is made of them, or the weights of older responses.
    """
    algorithm, training = config.algorithm, config.training
    return (
        training.ppo_epochs * actor_updates(training, responses) == 1
        and rollout_correction(config) == "recompute"
        and not (algorithm.kl_coef > 0 and algorithm.kl_placement == "reward")
    )


def update_problems(config: Config) -> Iterator[str]:
    """Problems of the numbers of updates that hold for any number of ranks."""
    training = config.training
    responses = responses_per_rollout(training)
    counts = {
        "--updates-per-rollout": training.updates_per_rollout,
        "--critic-updates-per-rollout": training.critic_updates_per_rollout,
    }
    for flag, count in counts.items():
        if count is not None and count > responses > 0:
            yield (
                f"{flag} {count} is more than the {responses} responses of a rollout "
                f"(--rollout-batch-size {training.rollout_batch_size} x --n-samples-per-prompt "
                f"{training.n_samples_per_prompt}); lower it or raise one of those"
            )
