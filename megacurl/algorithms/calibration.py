# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Calibration of the critic: does what it predicts for a response come true as often as it says?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BINS = tuple(f"{start}-{start + 10}" for start in range(0, 100, 10))
"""Tenths of the predicted success, in percent; a border belongs to the upper one."""


def success_share(numbers: Tensor, *, low: float, high: float) -> Tensor:
    """Map values or rewards from ``[low, high]`` to a share of success in [0, 1], float64.

    With one reward for a right and one for a wrong answer this is 0 or 1 for a reward, and the
    predicted probability of success for a value. What lies outside counts as the nearer end.

    Args:
        numbers: any shape.
        low: reward of a wrong answer.
        high: reward of a right answer, above ``low``.

    Raises:
        ValueError: if the range is empty.
    """
    if not low < high:
        raise ValueError(f"rewards run from {low} to {high}; reward_wrong must be the lower one")
    return ((numbers.detach().double() - low) / (high - low)).clamp(0.0, 1.0)


@dataclass(frozen=True)
class Calibration:
    """Predictions against outcomes.

    sums: float64 ``[5, 10]``; for each bin of the prediction p with outcomes y the count and the
    sums of p, y, (p - y)^2 and y^2. Those of several ranks are added up.
    """

    sums: Tensor

    @classmethod
    def of(cls, predicted: Tensor, observed: Tensor) -> Calibration:
        """Measure predictions and outcomes, both ``[N]`` in [0, 1].

        A prediction that is NaN is counted in the first bin, so that all results show it.
        """
        if predicted.shape != observed.shape or predicted.dim() != 1:
            raise ValueError(
                f"predicted has shape {tuple(predicted.shape)} and observed "
                f"{tuple(observed.shape)}; give one prediction and one outcome a response"
            )
        # On the CPU, because a GPU would add in another order every time; it is one number each.
        p, y = predicted.detach().double().cpu(), observed.detach().double().cpu()
        rows = torch.stack([torch.ones_like(p), p, y, (p - y).square(), y.square()])
        of_bin = (p.nan_to_num(0.0) * len(BINS)).long().clamp(0, len(BINS) - 1)
        return cls(rows.new_zeros(len(rows), len(BINS)).index_add_(1, of_bin, rows))

    @property
    def count(self) -> float:
        """Responses measured."""
        return float(self.sums[0].sum())

    @property
    def brier(self) -> float | None:
        """Mean (p - y)^2 (Brier 1950): 0 is perfect; None without a response."""
        return float(self.sums[3].sum()) / self.count if self.count else None

    @property
    def skill(self) -> float | None:
        """1 - Brier score / that of always predicting the mean outcome.

        Above 0 the critic knows more than the mean. None where all outcomes are equal.
        """
        if not self.count:
            return None
        _, _, observed, error, square = self.sums.sum(dim=1).tolist()
        of_mean = square - observed * observed / self.count
        # Outcomes are in [0, 1]; a smaller sum of squares is rounding.
        return 1.0 - error / of_mean if of_mean > 1e-9 * self.count else None

    @property
    def shares(self) -> list[float | None]:
        """Share of the responses in every bin."""
        count = self.count
        return [n / count if count else None for n in self.sums[0].tolist()]

    @property
    def gaps(self) -> list[float | None]:
        """Mean outcome minus mean prediction of every bin; None for an empty one."""
        counts, predicted, observed = self.sums[:3].tolist()
        return [
            (y - p) / n if n else None for n, p, y in zip(counts, predicted, observed, strict=True)
        ]

    @property
    def error(self) -> float | None:
        """Expected calibration error: mean |gap| over the responses; None without one."""
        if not self.count:
            return None
        return float((self.sums[2] - self.sums[1]).abs().sum()) / self.count
