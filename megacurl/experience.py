# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""From rewards and values to weighted advantages and targets, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.advantages import (
    apply_weights,
    critic_targets,
    trajectory_weights,
    whiten_advantages,
)
from megacurl.algorithms.estimators.registry import get_estimator
from megacurl.algorithms.importance import correct_staleness
from megacurl.algorithms.kl import kl_penalty
from megacurl.algorithms.metrics import ExplainedVariance
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.responses import Responses
from megacurl.algorithms.stochasticity import value_spread
from megacurl.config.batches import rollout_correction
from megacurl.config.schema import Config
from megacurl.megatron.actor import LogProbs
from megacurl.megatron.critic import Values
from megacurl.megatron.groups import Grid
from megacurl.megatron.shard import Shard


@dataclass(frozen=True)
class Experience:
    """advantages: [R] of the shard, on the last stage. weights: [B] W_S W_D.

    returns: [R] targets of the critic, on the last stage. health: of the values before the update,
    over the whole rollout. Both are empty without a critic. spread: [N] sigma of all responses of
    the rollout, 0 without a critic.
    """

    advantages: Tensor
    returns: Tensor
    weights: Tensor
    health: ExplainedVariance
    spread: Tensor
    metrics: dict[str, float]


def make_experience(
    shard: Shard,
    values: Values | None,
    difficulty: Mapping[str, float],
    config: Config,
    grid: Grid,
    *,
    warming_up: bool,
    old: LogProbs | None = None,
    reference: LogProbs | None = None,
) -> Experience:
    """Advantages weighted by W_S and W_D (CVPO Eq. 27), and the critic's targets; collective.

    Args:
        shard: the rank's share of the rollout.
        values: of the critic before its update; None without a critic.
        difficulty: W_D of every question of the rollout.
        config: the run's settings.
        grid: this rank's place.
        warming_up: the critic's targets are Monte-Carlo returns.
        old, reference: log-probs of actor and reference, for a KL penalty in the reward.
    """
    algorithm = config.algorithm
    advantages = returns = torch.empty(0, device=grid.device)
    if grid.is_last_stage:
        responses = _responses(shard, values, _reward_penalty(config, shard, old, reference))
        advantages = whiten_advantages(
            get_estimator(algorithm.advantage_estimator).estimate(responses, algorithm),
            shard.mask,
            algorithm,
            merge_moments=lambda moments: _merge_moments(moments, grid),
        )
        if values is not None:
            lam = 1.0 if warming_up else None
            returns = critic_targets(responses, algorithm, lam_critic=lam)
    health, metrics = ExplainedVariance(), {}
    spread = torch.zeros(len(shard.trajectories), dtype=torch.float64, device=grid.device)
    if values is not None:
        health = _critic_health(shard, values, returns, grid)
        spread = _value_spread(shard, values, config, grid)
        metrics = {
            "critic/mse": health.mse,
            "critic/explained_variance": health.value,
            "cvpo/sigma_mean": spread.mean().item(),
        }
    w_s, w_d = _weights(shard, spread, difficulty, config)
    if values is not None:
        metrics["cvpo/w_s_mean"] = w_s.mean().item()
    metrics["cvpo/w_d_mean"] = w_d.mean().item()
    own_w_s, own_w_d = w_s[shard.index], w_d[shard.index]
    if grid.is_last_stage:
        advantages = apply_weights(advantages, own_w_s, own_w_d, shard.cu_seqlens)
    return Experience(advantages, returns, own_w_s * own_w_d, health, spread, metrics)


def _responses(shard: Shard, values: Values | None, kl_penalty: Tensor | None) -> Responses:
    return Responses(
        mask=shard.mask,
        cu_seqlens=shard.cu_seqlens,
        index=shard.index,
        rewards=shard.all_rewards,
        group=shard.all_group,
        values=values.values if values else None,
        truncated=shard.truncated,
        end_values=values.end_values if values else None,
        kl_penalty=kl_penalty,
    )


def _critic_health(shard: Shard, values: Values, returns: Tensor, grid: Grid) -> ExplainedVariance:
    """Of the whole rollout, on every rank; collective."""
    own = ExplainedVariance()
    if grid.is_last_stage:
        own = ExplainedVariance.of(values.values, returns, shard.mask)
    whole = ExplainedVariance()
    for part in grid.gather_from_owners(own.to_tensor(grid.device)):
        whole = whole.merge(ExplainedVariance.from_tensor(part))
    return whole


def _value_spread(shard: Shard, values: Values, config: Config, grid: Grid) -> Tensor:
    """sigma of all responses of the rollout, [N], on every rank; collective."""
    spread = torch.zeros(len(shard.order), dtype=torch.float64, device=grid.device)
    if grid.is_last_stage:
        spread = value_spread(
            values.values,
            shard.mask,
            shard.cu_seqlens,
            stat=config.cvpo.ws_stat,
            ddof=config.cvpo.ws_ddof,
        )
    return shard.spread_to_all(spread, grid)


def _weights(
    shard: Shard, spread: Tensor, difficulty: Mapping[str, float], config: Config
) -> tuple[Tensor, Tensor]:
    """W_S and W_D of all responses of the rollout, [N]."""
    per_question = [difficulty[t.prompt_id] for t in shard.trajectories]
    return trajectory_weights(
        spread,
        shard.all_group,
        shard.all_correct,
        torch.tensor(per_question, dtype=torch.float64, device=spread.device),
        config.cvpo,
        score=shard.all_scores,
        include=~shard.all_truncated if config.algorithm.overlong_filter else None,
    )


def correct_lag(
    shard: Shard, old: LogProbs | None, config: Config, grid: Grid
) -> tuple[LogProbs | None, Tensor | None]:
    """What the clipped ratio starts from, and the weights [R] of the tokens, as set.

    ``old`` None is for an update that measures it (``update_measures_old``), and stays so.
    """
    correction = rollout_correction(config)
    if old is None or correction == "recompute" or not grid.is_last_stage:
        return old, None
    start, weights = correct_staleness(
        old.log_probs,
        shard.behaviour_log_probs,
        shard.mask,
        shard.cu_seqlens,
        correction=correction,
        high=config.algorithm.tis_cap,
    )
    return LogProbs(start, old.entropy), weights


def policy_metrics(shard: Shard, old: LogProbs, config: Config, grid: Grid) -> dict[str, float]:
    """Entropy, and how far the trainer's log-probs are from those sampled with; collective.

    Without a lag both have the same weights, so the gap is rounding, or a sync that went wrong.
    """
    sums = torch.zeros(7, dtype=torch.float64, device=grid.device)
    largest = torch.zeros(1, dtype=torch.float64, device=grid.device)
    if grid.is_last_stage:
        gap = (old.log_probs - shard.behaviour_log_probs).double()
        weights = gap.clamp(-20.0, 20.0).exp()
        clipped = weights > config.algorithm.tis_cap
        columns = (gap.abs(), old.entropy, -gap, weights, weights.square(), clipped)
        sums = torch.stack([*(c.double().sum() for c in columns), sums.new_tensor(gap.numel())])
        largest = gap.abs().amax().reshape(1) if gap.numel() else largest
    size, entropy, kl, weight, square, clipped, count = grid.sum_over_owners(sums).tolist()
    return {
        "sync/logprob_gap": size / count,
        "actor/entropy": entropy / count,
        "mismatch/kl": kl / count,
        "mismatch/max_gap": grid.max_over_owners(largest).item(),
        "mismatch/ess": weight * weight / (count * square),
        "mismatch/tis_clipped": clipped / count,
    }


def _reward_penalty(
    config: Config, shard: Shard, old: LogProbs | None, reference: LogProbs | None
) -> Tensor | None:
    if reference is None or old is None or config.algorithm.kl_placement != "reward":
        return None
    algorithm = config.algorithm
    return kl_penalty(
        old.log_probs,
        reference.log_probs,
        shard.mask,
        kl_coef=algorithm.kl_coef,
        estimator=algorithm.kl_estimator,
    )


def _merge_moments(moments: Moments, grid: Grid) -> Moments:
    """Of the whole rollout; called on the last stage, where every TP rank has the same numbers."""
    parts = grid.gather_over_dp(moments.to_tensor(grid.device))
    return Moments.merge_all(Moments.from_tensor(part) for part in parts)
