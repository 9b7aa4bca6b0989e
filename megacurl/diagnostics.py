# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What tells whether critic and weights can be trusted, measured in every step over all ranks."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from megacurl.algorithms.calibration import BINS, Calibration, success_share
from megacurl.algorithms.diagnostics import correlation, effective_share, mass_shares
from megacurl.algorithms.drift import Drift
from megacurl.algorithms.metrics import ExplainedVariance
from megacurl.algorithms.packed import (
    expand,
    first_valid_index,
    last_valid_index,
    segment_mean,
    segment_sum,
)
from megacurl.algorithms.strata import (
    LEVELS,
    QUARTERS,
    explained_variance_by,
    question_level,
    response_quarter,
)
from megacurl.config.schema import Config
from megacurl.experience import Experience
from megacurl.megatron.actor import LogProbs
from megacurl.megatron.critic import Values
from megacurl.megatron.groups import Grid
from megacurl.megatron.shard import Shard

_CONSTANT = 1e-5
"""Targets whose deviation is below this part of the reward range are equal but for rounding."""


def diagnose(
    shard: Shard,
    values: Values | None,
    old: LogProbs,
    experience: Experience,
    config: Config,
    grid: Grid,
    *,
    drift: Drift | None = None,
) -> dict[str, float]:
    """Calibration of the critic, what sigma goes with, where the advantages' mass lies; collective.

    What is not defined in a step is left out: what is the critic's without a critic, a correlation
    of something that does not vary, explained variance of targets that do not.

    Args:
        shard: the rank's share of the rollout.
        values: of the critic before its update; None without a critic.
        old: log-probs and entropy of the policy before its update.
        experience: weighted advantages, weights and targets.
        config: the run's settings.
        grid: this rank's place.
        drift: takes this step's correlation of sigma and entropy; None leaves it out.
    """
    level = question_level(
        shard.all_correct,
        shard.all_group,
        hard_up_to=config.cvpo.trend_low,
        easy_from=config.cvpo.trend_high,
    )
    weight, mass, entropy = _per_response(shard, old, experience, grid)
    counted = shard.all_valid_lengths > 0
    metrics: dict[str, float | None] = {"cvpo/weight_ess": effective_share(weight[counted])}
    for names, part in ((("wrong", "correct"), shard.all_correct.long()), (LEVELS, level)):
        metrics |= _named("advantage/mass", names, mass_shares(mass, part, len(names)))
    if values is not None:
        metrics |= _calibration(shard, values, config, grid)
        metrics |= _explained_variance(shard, values, experience.returns, level, config, grid)
        metrics |= _sigma_entropy(
            experience.spread[counted], entropy[counted], shard.all_group[counted], drift
        )
    return {name: number for name, number in metrics.items() if number is not None}


def _per_response(
    shard: Shard, old: LogProbs, experience: Experience, grid: Grid
) -> tuple[Tensor, Tensor, Tensor]:
    """Weight, sum of |advantage| and mean entropy of all responses, [N], on every rank."""
    own = torch.zeros(3, len(shard.order), dtype=torch.float64, device=grid.device)
    if grid.is_last_stage:
        mass = experience.advantages.double().abs()
        own = torch.stack(
            [
                experience.weights.double(),
                segment_sum(mass, shard.mask, shard.cu_seqlens),
                segment_mean(old.entropy.double(), shard.mask, shard.cu_seqlens),
            ]
        )
    weight, mass, entropy = shard.spread_to_all(own, grid)
    return weight, mass, entropy


def _calibration(
    shard: Shard, values: Values, config: Config, grid: Grid
) -> dict[str, float | None]:
    """Of the values before the first token of a response, and of those before its last."""
    sums = torch.zeros(2, 5, len(BINS), dtype=torch.float64)
    if grid.is_last_stage:
        share = functools.partial(
            success_share,
            low=config.algorithm.reward_wrong,
            high=config.algorithm.reward_correct,
        )
        rewards = shard.all_rewards[shard.index]
        places = [f(shard.mask, shard.cu_seqlens) for f in (first_valid_index, last_valid_index)]
        sums = torch.stack(
            [
                Calibration.of(share(values.values[at[at >= 0]]), share(rewards[at >= 0])).sums
                for at in places
            ]
        )
    start, end = map(Calibration, grid.sum_over_owners(sums.to(grid.device)).cpu())
    return {
        "critic/brier": start.brier,
        "critic/brier_end": end.brier,
        "critic/brier_skill": start.skill,
        "critic/calibration_error": start.error,
        **_named("critic/reliability", BINS, start.gaps),
        **_named("critic/reliability_share", BINS, start.shares),
    }


def _explained_variance(
    shard: Shard, values: Values, returns: Tensor, level: Tensor, config: Config, grid: Grid
) -> dict[str, float | None]:
    """Of the quarters of the responses and of the levels of the questions."""
    own = torch.zeros(len(QUARTERS) + len(LEVELS), 6, dtype=torch.float64, device=grid.device)
    if grid.is_last_stage:
        cuts = (
            (response_quarter(shard.mask, shard.cu_seqlens), len(QUARTERS)),
            (expand(level[shard.index], shard.cu_seqlens, shard.mask.numel()), len(LEVELS)),
        )
        parts = [
            measure.to_tensor(grid.device)
            for cut, count in cuts
            for measure in explained_variance_by(values.values, returns, shard.mask, cut, count)
        ]
        own = torch.stack(parts)
    whole = [ExplainedVariance()] * len(own)
    for rank in grid.gather_from_owners(own):
        whole = [
            one.merge(ExplainedVariance.from_tensor(part))
            for one, part in zip(whole, rank, strict=True)
        ]
    reward_range = config.algorithm.reward_correct - config.algorithm.reward_wrong
    least = (_CONSTANT * reward_range) ** 2
    numbers = [one.value if one.returns.variance() > least else None for one in whole]
    return {
        **_named("critic/ev_position", QUARTERS, numbers[: len(QUARTERS)]),
        **_named("critic/ev_difficulty", LEVELS, numbers[len(QUARTERS) :]),
    }


def _sigma_entropy(
    sigma: Tensor, entropy: Tensor, group: Tensor, drift: Drift | None
) -> dict[str, float | None]:
    """Whether sigma measures more than the entropy of the policy, [N] each."""
    overall = correlation(sigma, entropy)
    if drift is not None and overall is not None:
        drift.observe(overall)
    return {
        "cvpo/sigma_entropy_corr": overall,
        "cvpo/sigma_entropy_corr_within": correlation(sigma, entropy, group),
        "cvpo/sigma_entropy_drift": drift.value if drift is not None else None,
    }


def _named(
    prefix: str, names: Iterable[str], numbers: Sequence[float | None]
) -> Mapping[str, float | None]:
    return {f"{prefix}/{name}": number for name, number in zip(names, numbers, strict=True)}
