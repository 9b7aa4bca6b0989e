# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Measures of the weights: what sigma goes with, and where the advantages' mass lies.

All take vectors over ALL responses of the batch, gathered from the ranks. What is not defined (a
correlation of a constant, shares of nothing) is None.
"""

from __future__ import annotations

import torch
from torch import Tensor

_ROUNDING = 1e-6
"""A standard deviation below this part of the largest number is rounding of float32 inputs."""


def correlation(x: Tensor, y: Tensor, group: Tensor | None = None) -> float | None:
    """Return Pearson's correlation of two vectors ``[N]`` in float64.

    Args:
        x, y: ``[N]``.
        group: int ``[N]`` from 0; when given, of the deviations from each group's own means.

    Returns:
        A number in [-1, 1]; None where x or y does not vary, so also for fewer than two entries.
    """
    if x.shape != y.shape or x.dim() != 1:
        raise ValueError(
            f"x has shape {tuple(x.shape)} and y {tuple(y.shape)}; give two vectors of one length"
        )
    if x.numel() < 2:
        return None
    deviations = []
    # On the CPU, because a GPU would add up a group in another order every time.
    for numbers in (x.detach().double().cpu(), y.detach().double().cpu()):
        deviation = numbers - (numbers.mean() if group is None else _means(numbers, group.cpu()))
        size = float(deviation.square().mean().sqrt())
        if size <= _ROUNDING * float(numbers.abs().amax()):
            return None
        deviations.append(deviation / size)  # before the product, which could overflow
    return float((deviations[0] * deviations[1]).mean().clamp(-1.0, 1.0))


def _means(numbers: Tensor, group: Tensor) -> Tensor:
    """Mean of its group for every entry, [N]."""
    sizes = torch.bincount(group)
    sums = torch.zeros(sizes.numel(), dtype=numbers.dtype, device=numbers.device)
    means: Tensor = sums.index_add_(0, group, numbers) / sizes.clamp(min=1)
    return means[group]


def effective_share(weights: Tensor) -> float | None:
    """Return the effective sample size of the weights over their number, (Σw)²/(N Σw²).

    1 for equal weights, 1/N if one response has it all; None if all are 0, or there are none.

    Args:
        weights: ``[N]``, not negative.
    """
    weights = weights.detach().double()
    square = float(weights.square().sum())
    return float(weights.sum()) ** 2 / (weights.numel() * square) if square else None


def mass_shares(mass: Tensor, part: Tensor, count: int) -> list[float | None]:
    """Return the share of the total mass that each part has; None for all if the total is 0.

    Args:
        mass: ``[N]``, not negative, as the sum of |advantage| over a response's tokens.
        part: int ``[N]`` from 0 to ``count`` - 1.
        count: number of parts.
    """
    mass = mass.detach().double()
    total = float(mass.sum())
    if not total:
        return [None] * count
    return [float(mass[part == k].sum()) / total for k in range(count)]
