# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""CVPO's difficulty weight W_D of a question, as a function of its accuracy (Eq. 25 and 26)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from megacurl.config.schema import CVPOConfig
from megacurl.curriculum.phase import Phase

Shape = tuple[float, float, float, float]
"""(k1, c1, k2, c2): steepness and centre of the rising and of the falling sigmoid."""

EARLY: Shape = CVPOConfig.wd_early
BOTTLENECK: Shape = CVPOConfig.wd_bottleneck


def difficulty_weight(
    accuracy: Tensor, phase: Phase, *, early: Shape = EARLY, bottleneck: Shape = BOTTLENECK
) -> Tensor:
    """Return W_D = 2 sigmoid(k1 (rho - c1)) sigmoid(-k2 (rho - c2)), float64.

    In the bottleneck phase (Eq. 26) the factor 1 - rho^2 makes the weight of a question that is
    always solved exactly 0.

    Args:
        accuracy: rho in [0, 1], any shape.
        phase: ``early`` (Eq. 25) or ``bottleneck`` (Eq. 26).
        early, bottleneck: (k1, c1, k2, c2) of the two.
    """
    rho = accuracy.double()
    if bool(((rho < 0) | (rho > 1) | rho.isnan()).any()):
        raise ValueError(f"accuracies run from {rho.min()} to {rho.max()}; they must be in [0, 1]")
    k1, c1, k2, c2 = _shape_of(phase, early, bottleneck)
    weight = 2 * torch.sigmoid(k1 * (rho - c1)) * torch.sigmoid(-k2 * (rho - c2))
    return weight * (1 - rho.square()) if phase == "bottleneck" else weight


def difficulty_peak(
    phase: Phase, *, early: Shape = EARLY, bottleneck: Shape = BOTTLENECK
) -> tuple[float, float]:
    """Return (rho, W_D) at the maximum of W_D over [0, 1].

    log W_D is a sum of concave terms, so its derivative falls and has at most one zero: bisection.
    """
    k1, c1, k2, c2 = _shape_of(phase, early, bottleneck)

    def slope(rho: float) -> float:
        rising = k1 * _sigmoid(-k1 * (rho - c1))
        falling = k2 * _sigmoid(k2 * (rho - c2))
        mastery = 2 * rho / (1 - rho * rho) if phase == "bottleneck" else 0.0
        return rising - falling - mastery

    low, high = 0.0, math.nextafter(1.0, 0.0)
    if slope(low) <= 0:
        peak = 0.0
    elif slope(high) >= 0:
        peak = 1.0
    else:
        while (middle := 0.5 * (low + high)) not in (low, high):
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        peak = low
    at_peak = torch.tensor(peak, dtype=torch.float64)
    return peak, float(difficulty_weight(at_peak, phase, early=early, bottleneck=bottleneck))


def _shape_of(phase: Phase, early: Shape, bottleneck: Shape) -> Shape:
    if phase == "early":
        return early
    if phase == "bottleneck":
        return bottleneck
    raise ValueError(f"phase is {phase!r}; use 'early' or 'bottleneck'")


def _sigmoid(x: float) -> float:
    # exp() of a large positive number overflows, so keep its argument negative.
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
