# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A packed batch of every kind of response, and the value path."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.advantages import critic_targets, whiten_advantages
from megacurl.algorithms.estimators.registry import get_estimator
from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig


@dataclass
class Batch:
    mask: Tensor
    cu_seqlens: Tensor

    @property
    def lengths(self) -> list[int]:
        return [int(n) for n in self.cu_seqlens.diff()]

    def part(self, sequences: list[int], *token_values: Tensor) -> tuple[Batch, list[Tensor]]:
        """Return the batch of some of the sequences, in the given order, with its token values."""
        bounds = self.cu_seqlens.tolist()
        pieces = [torch.arange(bounds[s], bounds[s + 1]) for s in sequences]
        index = torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.long)
        lengths = torch.tensor([0] + [len(p) for p in pieces])
        part = Batch(self.mask[index], lengths.cumsum(0).int())
        return part, [x[index] for x in token_values]

    def poisoned(self, x: Tensor) -> Tensor:
        """Return ``x`` with NaN at every masked position."""
        return torch.where(self.mask, x, math.nan)


# A long, a one-token, an empty, an all-masked (index 3) and ordinary sequences.
LENGTHS = (23, 1, 0, 4, 9, 2, 16)
ALL_MASKED = 3


def make_batch(seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    cu_seqlens = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    mask = torch.rand(int(cu_seqlens[-1]), generator=generator) > 0.25
    mask[cu_seqlens[ALL_MASKED] : cu_seqlens[ALL_MASKED + 1]] = False
    return Batch(mask, cu_seqlens)


def noise(batch: Batch, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch.mask.numel(), generator=generator, dtype=torch.float64).to(dtype)


def advantages_and_targets(
    values: Tensor,
    outcome: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    config: AlgorithmConfig,
    *,
    lam_critic: float | None = None,
    **more: Tensor,
) -> tuple[Tensor, Tensor]:
    """GAE advantages, whitened where the config says so, and the critic's targets."""
    responses = Responses(
        mask=mask,
        cu_seqlens=cu_seqlens,
        index=torch.arange(len(outcome)),
        rewards=outcome,
        group=torch.zeros(len(outcome), dtype=torch.long),
        values=values,
        **more,
    )
    advantages = get_estimator("gae").estimate(responses, config)
    return (
        whiten_advantages(advantages, mask, config),
        critic_targets(responses, config, lam_critic=lam_critic),
    )
