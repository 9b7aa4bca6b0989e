# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The training loop: read ``train_step`` and ``update`` and you know the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from megacurl.algorithms.metrics import critic_warmup_done
from megacurl.config.batches import update_measures_old
from megacurl.config.errors import ConfigError
from megacurl.config.schema import Config
from megacurl.diagnostics import diagnose
from megacurl.divergence import explain_divergence
from megacurl.experience import correct_lag, make_experience, policy_metrics
from megacurl.generation import rollout_metrics
from megacurl.megatron import groups
from megacurl.megatron.shard import Shard
from megacurl.run import Run
from megacurl.trajectory import Trajectory


def train_step(run: Run) -> dict[str, float]:
    """Roll out, judge, weigh, update critic and actor, hand the new policy to the engine."""
    with run.timers("generate"):
        rollout = run.rollout()
        run.rest_engine()
    trajectories, everything = rollout.trajectories, rollout.everything
    difficulty = run.curriculum.observe(
        [t.prompt_id for t in everything], [t.correct for t in everything]
    )
    metrics = rollout.metrics | run.curriculum.metrics() | run.cursor.metrics()
    policy_learns = bool(trajectories) and not run.warming_up
    if trajectories:  # a sampling rule may find no question worth training on
        metrics |= update(run, trajectories, difficulty)
    with run.timers("sync"):
        run.hand_over(trained=policy_learns)
    run.step += 1
    return metrics | {"sync/version": run.version, "perf/tokens": count_tokens(everything)}


def update(
    run: Run, trajectories: Sequence[Trajectory], difficulty: Mapping[str, float]
) -> dict[str, float]:
    """Advantages of the trajectories, and the steps of critic and actor on them."""
    config, timers = run.config, run.timers
    with timers("log_prob"):
        shard = Shard(trajectories, config, run.grid, run.step)
        values = run.critic.values(shard) if run.critic else None
        # One optimizer step measures them itself: a forward pass less.
        measured_later = not run.warming_up and update_measures_old(config, len(trajectories))
        old = None if measured_later else run.actor.log_probs(shard)
        reference = run.reference.log_probs(shard) if run.reference else None
    experience = make_experience(
        shard,
        values,
        difficulty,
        config,
        run.grid,
        warming_up=run.warming_up,
        old=old,
        reference=reference,
    )
    metrics = rollout_metrics(trajectories) | experience.metrics
    with timers("train"):
        if run.critic and values:
            metrics |= run.critic.update(shard, values, experience.returns)
        if not run.warming_up:
            weights = experience.weights if config.algorithm.positive_lm_weighted else None
            start, token_weights = correct_lag(shard, old, config, run.grid)
            updated = run.actor.update(
                shard,
                start,
                experience.advantages,
                reference=reference,
                weights=weights,
                token_weights=token_weights,
            )
            metrics |= updated.metrics
            old = updated.old
    assert old is not None  # measured before the update, or by it
    metrics |= policy_metrics(shard, old, config, run.grid)
    drift = None if run.warming_up else run.drift
    metrics |= diagnose(shard, values, old, experience, config, run.grid, drift=drift)
    if run.warming_up:
        health = experience.health
        run.warming_up = not critic_warmup_done(
            run.step + 1, health.mse, health.value, config.algorithm
        )
    return metrics


def train(run: Run) -> None:
    """Evaluate, step, checkpoint until ``train_iters`` steps are done."""
    run.sync(run.version)
    if run.step == 0:
        with run.timers("eval"):
            metrics = run.evaluate_if_due()
        run.logger.log(0, metrics | run.spent_time())
    while run.step < run.config.training.train_iters:
        iteration(run)
    run.finish()


def iteration(run: Run) -> dict[str, float]:
    """One turn of the loop: a step, then evaluation, checkpoint and report. Returns its metrics."""
    with run.timers("step"):
        metrics = train_step(run)
        with run.timers("eval"):
            metrics |= run.evaluate_if_due()
        with run.timers("checkpoint"):
            run.save_if_due()
    metrics |= run.spent_time()
    busy = metrics["time/step"] - metrics["time/eval"] - metrics["time/checkpoint"]
    metrics["perf/tokens_per_s"] = metrics.pop("perf/tokens") / max(busy, 1e-9)
    run.logger.log(run.step, metrics)
    run.progress.step(run.step, metrics)
    return metrics


def count_tokens(trajectories: Sequence[Trajectory]) -> int:
    """Prompt and response tokens of a step."""
    return sum(t.num_tokens for t in trajectories)


def main(config: Config) -> None:
    """Run the training that ``config`` describes; every rank of the world calls this.

    Raises:
        ConfigError: before anything is written, for what cannot be trained with.
        DivergenceError: if gradient norms or probabilities are no longer finite.
    """
    grid = groups.initialize(config.parallel, config.training.seed)
    try:
        run = Run(config, grid)
    except ConfigError:
        groups.shut_down()  # every rank refused: leave in order, so that the message comes last
        raise
    try:
        train(run)
    except FloatingPointError as error:
        # What was not finite is known to all ranks, so they are all here.
        groups.shut_down()
        raise explain_divergence(error, config, run.step, run.saved()) from error
    finally:
        run.close()
    # Not after an error: leaving the groups would wait for ranks that may be stuck.
    groups.shut_down()
