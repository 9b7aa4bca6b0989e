# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Health of the critic: explained variance, mean squared error, and the end of its warm-up."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from megacurl.algorithms.moments import Moments
from megacurl.config.schema import AlgorithmConfig


@dataclass(frozen=True)
class ExplainedVariance:
    """EV = 1 - Var(R - V)/Var(R) over valid tokens, in a form that merges over ranks."""

    residuals: Moments = field(default_factory=Moments)
    returns: Moments = field(default_factory=Moments)

    @classmethod
    def of(cls, values: Tensor, returns: Tensor, mask: Tensor) -> ExplainedVariance:
        """Measure values and returns, both ``[T]``, where ``mask`` is True."""
        target = returns[mask].double()
        return cls(Moments.of(target - values[mask].double()), Moments.of(target))

    def merge(self, other: ExplainedVariance) -> ExplainedVariance:
        """Return the measure of the union of two disjoint sets of tokens."""
        return ExplainedVariance(
            self.residuals.merge(other.residuals), self.returns.merge(other.returns)
        )

    @property
    def value(self) -> float:
        """Explained variance; 0 where the returns do not vary."""
        total = self.returns.variance()
        return 1.0 - self.residuals.variance() / total if total > 0 else 0.0

    @property
    def mse(self) -> float:
        """Mean of (R - V)^2."""
        return self.residuals.variance() + self.residuals.mean**2

    def to_tensor(self, device: torch.device | str | None = None) -> Tensor:
        """Return float64 ``[6]``, the form that ranks gather."""
        return torch.cat((self.residuals.to_tensor(device), self.returns.to_tensor(device)))

    @classmethod
    def from_tensor(cls, packed: Tensor) -> ExplainedVariance:
        """Inverse of :meth:`to_tensor`."""
        return cls(Moments.from_tensor(packed[:3]), Moments.from_tensor(packed[3:]))


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> float:
    """Return EV of one batch; see :class:`ExplainedVariance` to merge batches."""
    return ExplainedVariance.of(values, returns, mask).value


def value_pretrain_done(
    step: int,
    mse: float,
    ev: float,
    *,
    max_steps: int,
    min_steps: int = 0,
    mse_below: float | None = None,
    ev_above: float | None = None,
) -> bool:
    """Whether value pretraining ends after ``step`` steps (VAPO, VC-PPO; CVPO: MSE < 1, EV > 0).

    It ends at ``max_steps``; before that, from ``min_steps`` on, when every bound that is given
    holds strictly. Without a bound only ``max_steps`` counts.
    """
    if step >= max_steps:
        return True
    if step < min_steps or (mse_below is None and ev_above is None):
        return False
    return (mse_below is None or mse < mse_below) and (ev_above is None or ev > ev_above)


def critic_warmup_done(step: int, mse: float, ev: float, config: AlgorithmConfig) -> bool:
    """Apply :func:`value_pretrain_done` with the ``critic_warmup_*`` settings."""
    by_criterion = config.critic_warmup_stop == "criterion"
    return value_pretrain_done(
        step,
        mse,
        ev,
        max_steps=config.critic_warmup_iters,
        min_steps=config.critic_warmup_min_iters,
        mse_below=config.critic_warmup_mse_below if by_criterion else None,
        ev_above=config.critic_warmup_ev_above if by_criterion else None,
    )
