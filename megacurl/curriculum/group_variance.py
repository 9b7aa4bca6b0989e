# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VCRL's measure of a question's worth: the variance of its rewards relative to the largest one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def group_variance(rewards: Sequence[float], *, low: float, high: float) -> float:
    """Return p, the unbiased variance of rewards in [low, high] over the largest it can be.

    In [0, 1]; 0 for equal rewards and for a single one. For k of G rewards at one end and the
    others at the other this is VCRL's k(G - k)/(floor(G/2) ceil(G/2)), to the bit.

    Raises:
        ValueError: for no rewards, or low >= high, or a reward outside.
    """
    if not rewards or not low < high or not all(low <= r <= high for r in rewards):
        raise ValueError(
            f"rewards {list(rewards)[:8]} in [{low}, {high}]; give at least one, all inside a "
            "range that is not empty"
        )
    shares = [(r - low) / (high - low) for r in rewards]
    # G times the squared deviations, as a sum over pairs: whole numbers for two values, and
    # exactly 0 for equal ones, so that the comparison with a threshold is exact.
    squares = sum((a - b) ** 2 for a, b in itertools.combinations(shares, 2))
    return squares / _largest(len(shares))


def _largest(count: int) -> int:
    """k(G - k) at its largest; 1 for a single attempt, whose variance is 0."""
    return max((count // 2) * ((count + 1) // 2), 1)


def threshold_at(step: int, *, early: float, late: float, switch_step: int) -> float:
    """Return kappa of zero-based ``step``: ``early`` for the first ``switch_step`` steps."""
    return early if step < switch_step else late
