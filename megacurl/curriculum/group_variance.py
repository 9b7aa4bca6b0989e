# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VCRL's measure of a question's worth: the variance of its rewards relative to the largest one."""

from __future__ import annotations

from collections.abc import Sequence


def binary_group_variance(successes: int, attempts: int) -> float:
    """Return p = k(G - k)/(floor(G/2) ceil(G/2)) of k successes in G attempts, in [0, 1].

    This is the unbiased variance of G rewards of two values, divided by the largest it can be. 1 at
    half right, 0 for all or none right, and for a single attempt.

    Raises:
        ValueError: unless 0 <= successes <= attempts and attempts >= 1.
    """
    if attempts < 1 or not 0 <= successes <= attempts:
        raise ValueError(
            f"{successes} successes of {attempts} attempts; give 0 <= successes <= attempts"
        )
    return successes * (attempts - successes) / _largest(attempts)


def group_variance(rewards: Sequence[float], *, low: float, high: float) -> float:
    """Return the same for graded rewards in [low, high]; with two values it is the binary one.

    Raises:
        ValueError: for no rewards, or low >= high, or a reward outside.
    """
    if not rewards or not low < high or not all(low <= r <= high for r in rewards):
        raise ValueError(
            f"rewards {list(rewards)[:8]} in [{low}, {high}]; give at least one, all inside a "
            "range that is not empty"
        )
    count = len(rewards)
    mean = sum(rewards) / count
    squares = sum((r - mean) ** 2 for r in rewards)
    return squares * count / ((high - low) ** 2 * _largest(count))


def _largest(count: int) -> int:
    """k(G - k) at its largest; 1 for a single attempt, whose variance is 0."""
    return max((count // 2) * ((count + 1) // 2), 1)


def threshold_at(step: int, *, early: float, late: float, switch_step: int) -> float:
    """Return kappa of zero-based ``step``: ``early`` for the first ``switch_step`` steps."""
    return early if step < switch_step else late
