# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""From values and verdicts to weighted advantages and targets, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.advantages import apply_weights, trajectory_weights, value_advantages
from megacurl.algorithms.kl import kl_penalty
from megacurl.algorithms.metrics import ExplainedVariance
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.stochasticity import value_spread
from megacurl.config.schema import Config
from megacurl.megatron.actor import LogProbs
from megacurl.megatron.critic import Values
from megacurl.megatron.groups import Grid
from megacurl.megatron.shard import Shard


@dataclass(frozen=True)
class Experience:
    """advantages, returns: [R] of the shard, on the last stage. weights: [B] W_S W_D.

    mse, explained_variance: of the values before the update, over the whole rollout.
    """

    advantages: Tensor
    returns: Tensor
    weights: Tensor
    mse: float
    explained_variance: float
    metrics: dict[str, float]


def make_experience(
    shard: Shard,
    values: Values,
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
        values: of the critic before its update.
        difficulty: W_D of every question of the rollout.
        config: the run's settings.
        grid: this rank's place.
        warming_up: the critic's targets are Monte-Carlo returns.
        old, reference: log-probs of actor and reference, for a KL penalty in the reward.
    """
    last = grid.is_last_stage
    advantages = returns = torch.empty(0, device=grid.device)
    health = health_of_all = ExplainedVariance()
    spread = torch.zeros(len(shard.order), dtype=torch.float64, device=grid.device)
    if last:
        advantages, returns = value_advantages(
            values.values,
            shard.outcome,
            shard.mask,
            shard.cu_seqlens,
            config.algorithm,
            truncated=shard.truncated,
            bootstrap_values=values.end_values,
            kl_penalty=_reward_penalty(config, shard, old, reference),
            lam_critic=1.0 if warming_up else None,
            merge_moments=lambda moments: _merge_moments(moments, grid),
        )
        spread = value_spread(
            values.values,
            shard.mask,
            shard.cu_seqlens,
            stat=config.cvpo.ws_stat,
            ddof=config.cvpo.ws_ddof,
        )
        health = ExplainedVariance.of(values.values, returns, shard.mask)
    parts = grid.gather_from_owners(health.to_tensor(grid.device))
    for part in parts:
        health_of_all = health_of_all.merge(ExplainedVariance.from_tensor(part))
    everyone = shard.spread_to_all(spread, grid)
    include = ~shard.all_truncated if config.algorithm.overlong_filter else None
    per_question = [difficulty[t.prompt_id] for t in shard.trajectories]
    w_s, w_d = trajectory_weights(
        everyone,
        shard.all_group,
        shard.all_correct,
        torch.tensor(per_question, dtype=torch.float64, device=grid.device),
        config.cvpo,
        include=include,
    )
    own_w_s, own_w_d = w_s[shard.index], w_d[shard.index]
    if last:
        advantages = apply_weights(advantages, own_w_s, own_w_d, shard.cu_seqlens)
    return Experience(
        advantages=advantages,
        returns=returns,
        weights=own_w_s * own_w_d,
        mse=health_of_all.mse,
        explained_variance=health_of_all.value,
        metrics={
            "critic/mse": health_of_all.mse,
            "critic/explained_variance": health_of_all.value,
            "cvpo/sigma_mean": everyone.mean().item(),
            "cvpo/w_s_mean": w_s.mean().item(),
            "cvpo/w_d_mean": w_d.mean().item(),
        },
    )


def policy_metrics(shard: Shard, old: LogProbs, grid: Grid) -> dict[str, float]:
    """Entropy of the policy, and how far the engine's log-probs are from the trainer's; collective.

    Both have the same weights, so the gap is rounding, or a sync that went wrong.
    """
    sums = torch.zeros(3, dtype=torch.float64, device=grid.device)
    if grid.is_last_stage:
        sums[0] = (old.log_probs - shard.behaviour_log_probs).abs().sum()
        sums[1] = old.entropy.sum()
        sums[2] = old.entropy.numel()
    gap, entropy, count = grid.sum_over_owners(sums).tolist()
    return {"sync/logprob_gap": gap / count, "actor/entropy": entropy / count}


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
