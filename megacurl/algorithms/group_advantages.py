# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantages of whole responses from the other responses to the same question: no critic needed.

All functions take vectors over ALL responses of a rollout (every rank has them), so a group is
complete however its responses were dealt to the ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from megacurl.algorithms.packed import segment_mean, segment_sum


def grpo_advantages(
    rewards: Tensor,
    group: Tensor,
    *,
    std: Literal["sample", "population", "none"] = "sample",
    eps: float = 1e-6,
) -> Tensor:
    """Return (R_i - mean)/(std + eps) over the group of each response, float64 ``[N]``.

    GRPO (DeepSeekMath). A group whose rewards are all equal, and one of a single response, gives
    advantage 0.

    Args:
        rewards: ``[N]``.
        group: int ``[N]``, index of the question.
        std: of the sample (n - 1), of the population (n), or ``none``: R_i - mean (Dr. GRPO).
        eps: guards the division.

    Raises:
        ValueError: for an unknown ``std`` or vectors that do not match.
    """
    if std not in ("sample", "population", "none"):
        raise ValueError(f"grpo_std is {std!r}; use 'sample', 'population' or 'none'")
    groups = _measure(rewards, group)
    if std == "none":
        return groups.deviation
    divisor = groups.count - 1 if std == "sample" else groups.count
    spread = (groups.squares / divisor.clamp(min=1)).sqrt()
    return groups.deviation / (spread + eps)[groups.key]


def rloo_advantages(rewards: Tensor, group: Tensor) -> Tensor:
    """Return R_i minus the mean of the other responses to its question, float64 ``[N]`` (RLOO).

    That is G/(G-1) times the deviation from the group's mean; 0 for a group of one.

    Args:
        rewards: ``[N]``.
        group: int ``[N]``, index of the question.
    """
    groups = _measure(rewards, group)
    return groups.deviation * (groups.count / (groups.count - 1).clamp(min=1))[groups.key]


@dataclass(frozen=True)
class _Groups:
    """deviation ``[N]``: R_i - mean of its group. key ``[N]``: number of its group.

    count, squares ``[P]``: responses of every group, and their summed squared deviations.
    """

    deviation: Tensor
    key: Tensor
    count: Tensor
    squares: Tensor


def _measure(rewards: Tensor, group: Tensor) -> _Groups:
    """Sums run in sorted order, so the order of the responses changes no bit.

    Equal rewards have deviation exactly 0, which a rounded mean would not give.
    """
    if rewards.dim() != 1 or rewards.shape != group.shape:
        raise ValueError(
            f"rewards have shape {tuple(rewards.shape)}, group {tuple(group.shape)}; "
            "give one entry a response in both"
        )
    rewards = rewards.detach().double()
    _, key, counts = torch.unique(group, return_inverse=True, return_counts=True)
    if rewards.numel() == 0:
        return _Groups(rewards, key, counts.double(), rewards)
    by_reward = torch.argsort(rewards, stable=True)
    order = by_reward[torch.argsort(key[by_reward], stable=True)]
    bounds = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    grouped, everyone = rewards[order], torch.ones_like(key, dtype=torch.bool)
    mean = segment_mean(grouped, everyone, bounds)
    constant = grouped[bounds[:-1]] == grouped[bounds[1:] - 1]
    deviation = torch.where(constant[key], 0.0, rewards - mean[key])
    squares = segment_sum(deviation[order].square(), everyone, bounds)
    return _Groups(deviation, key, counts.double(), squares)
