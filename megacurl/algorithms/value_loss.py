# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The critic's squared error, plain or clipped around the old values."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.aggregation import aggregate
from megacurl.algorithms.packed import select
from megacurl.ops import usable


@dataclass(frozen=True)
class ValueStats:
    """Sums over valid tokens (0-dim tensors); all add up over micro-batches and ranks."""

    tokens: Tensor
    clipped: Tensor
    """Tokens whose clipped error was the larger one, so that they have no gradient."""
    squared_error: Tensor
    """Sum of (V - R)^2, without 1/2 and without the clip."""

    def merge(self, other: ValueStats) -> ValueStats:
        """Combine the statistics of two disjoint parts of a batch."""
        return ValueStats(
            self.tokens + other.tokens,
            self.clipped + other.clipped,
            self.squared_error + other.squared_error,
        )

    def metrics(self) -> dict[str, float]:
        """Return per-token means as plain numbers (0 for a batch without valid tokens)."""
        tokens = max(float(self.tokens), 1.0)
        return {
            "clip_frac": float(self.clipped) / tokens,
            "mse": float(self.squared_error) / tokens,
        }


def value_loss(
    values: Tensor,
    returns: Tensor,
    old_values: Tensor,
    mask: Tensor,
    coefficients: Tensor,
    *,
    value_clip: float | None = None,
    half: bool = True,
) -> tuple[Tensor, ValueStats]:
    """Return this batch's part of the value loss (a scalar) and its statistics.

    Token loss 1/2 (V - R)^2, or with ``value_clip`` c the larger of that and the error of V clipped
    to [V_old - c, V_old + c]. VAPO, VC-PPO and CVPO name no clip: None.

    Args:
        values: ``[T]`` from the critic being trained, differentiable.
        returns: ``[T]`` targets.
        old_values: ``[T]`` of the critic at rollout time.
        mask: bool ``[T]``.
        coefficients: ``[T]``.
        value_clip: clip range, or None.
        half: False drops the factor 1/2 (the plain MSE of CVPO's "loss less than 1").
    """
    if value_clip is not None and not value_clip > 0:
        raise ValueError(f"value_clip is {value_clip}; it must be positive, or None")
    constants = [returns, coefficients] + ([] if value_clip is None else [old_values])
    if (
        values.dim() == 1
        and all(t.shape == values.shape for t in (mask, *constants))
        and mask.device == values.device
        and usable(values, *constants)
    ):
        loss, sums, _ = torch.ops.megacurl.value_loss(
            values.contiguous(),
            returns.detach().contiguous(),
            None if value_clip is None else old_values.detach().contiguous(),
            mask.contiguous(),
            coefficients.detach().contiguous(),
            *(value_clip or 0.0, half),
        )
        # The columns are ValueStat in csrc/include/megacurl/api.h.
        return loss, ValueStats(sums[1], sums[2], sums[3])
    target = select(returns.detach(), mask)
    values = select(values, mask)
    error = (values - target).square()
    token_loss = error
    clipped = torch.zeros_like(mask)
    if value_clip is not None:
        old = select(old_values.detach(), mask)
        inside = torch.clamp(values.detach(), old - value_clip, old + value_clip)
        clipped_error = (inside - target).square()
        # Strictly larger only where V left the range, where the clipped value is constant.
        clipped = clipped_error > error.detach()
        token_loss = torch.where(clipped, clipped_error, error)
    stats = ValueStats(mask.sum(), clipped.sum(), error.detach().sum())
    return aggregate(token_loss * (0.5 if half else 1.0), mask, coefficients), stats
