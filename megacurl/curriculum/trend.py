# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The stagnation test that ends the early phase of the curriculum (CVPO Eq. 22-24)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from megacurl.config.schema import CVPOConfig

TrendAggregate = Literal["mean", "all", "frac"]


@dataclass(frozen=True)
class StagnationTest:
    """Outcome of one round's test."""

    low_ok: bool
    """The hard questions stagnate: |delta| is small."""
    high_ok: bool
    """The easy questions improve no more: delta (signed) is small."""
    n_low: int
    n_high: int
    mean_low_delta: float
    """Mean |delta| of the hard questions, 0 without any."""
    mean_high_delta: float
    """Mean signed delta of the easy questions, 0 without any."""

    @property
    def stagnant(self) -> bool:
        """Both conditions hold: a learning bottleneck."""
        return self.low_ok and self.high_ok


def stagnation_test(
    means: Sequence[float],
    deltas: Sequence[float | None],
    *,
    low: float = CVPOConfig.trend_low,
    low_delta: float = CVPOConfig.trend_low_delta,
    high: float = CVPOConfig.trend_high,
    high_delta: float = CVPOConfig.trend_high_delta,
    aggregate: TrendAggregate = CVPOConfig.trend_aggregate,
    frac: float = CVPOConfig.trend_frac,
    empty_is_stagnant: bool = False,
) -> StagnationTest:
    """Test whether hard questions stand still and easy ones have stopped improving.

    Args:
        means: posterior mean of each question in the test.
        deltas: relative change of each (Eq. 22); questions with None take no part.
        low, low_delta: questions with mean <= low stagnate at |delta| <= low_delta.
        high, high_delta: questions with mean >= high stagnate at delta <= high_delta.
        aggregate: whether the mean change, every question or a fraction ``frac`` must stagnate.
        frac: the fraction.
        empty_is_stagnant: what a set without questions counts as.
    """
    if len(means) != len(deltas):
        raise ValueError(f"{len(means)} means but {len(deltas)} deltas; give one of each")
    if aggregate not in ("mean", "all", "frac"):
        raise ValueError(f"trend_aggregate is {aggregate!r}; use 'mean', 'all' or 'frac'")
    seen = [(m, d) for m, d in zip(means, deltas, strict=True) if d is not None]
    low_changes = [abs(d) for m, d in seen if m <= low]
    high_changes = [d for m, d in seen if m >= high]

    def small(changes: list[float], bound: float) -> bool:
        if not changes:
            return empty_is_stagnant
        if aggregate == "mean":
            return _mean(changes) <= bound
        share = sum(c <= bound for c in changes) / len(changes)
        return share >= (1.0 if aggregate == "all" else frac)

    return StagnationTest(
        low_ok=small(low_changes, low_delta),
        high_ok=small(high_changes, high_delta),
        n_low=len(low_changes),
        n_high=len(high_changes),
        mean_low_delta=_mean(low_changes),
        mean_high_delta=_mean(high_changes),
    )


def _mean(values: list[float]) -> float:
    # fsum rounds once, so the verdict does not depend on the order of the questions.
    return math.fsum(values) / len(values) if values else 0.0
