# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Count, mean and spread that merge exactly over ranks and micro-batches (Chan et al. 1979)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Moments:
    """First two moments of a set of numbers; ``m2`` is the sum of squared deviations."""

    count: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    @classmethod
    def of(cls, x: Tensor, mask: Tensor | None = None) -> Moments:
        """Measure ``x`` (where ``mask`` is True) in two float64 passes."""
        x = (x if mask is None else x[mask]).detach().double()
        if x.numel() == 0:
            return cls()
        mean = x.mean()
        return cls(float(x.numel()), float(mean), float((x - mean).square().sum()))

    def merge(self, other: Moments) -> Moments:
        """Return the moments of the union of two disjoint sets."""
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        count = self.count + other.count
        delta = other.mean - self.mean
        mean = self.mean + delta * other.count / count
        m2 = self.m2 + other.m2 + delta * delta * self.count * other.count / count
        return Moments(count, mean, m2)

    @staticmethod
    def merge_all(parts: Iterable[Moments]) -> Moments:
        """Merge in the order given; use rank order so that every rank gets the same bits."""
        total = Moments()
        for part in parts:
            total = total.merge(part)
        return total

    def variance(self, ddof: int = 0) -> float:
        """Return m2/(count - ddof), or 0 for fewer than ddof + 1 numbers."""
        return self.m2 / (self.count - ddof) if self.count > ddof else 0.0

    def to_tensor(self, device: torch.device | str | None = None) -> Tensor:
        """Return float64 ``[3]``, the form that ranks gather."""
        return torch.tensor([self.count, self.mean, self.m2], dtype=torch.float64, device=device)

    @classmethod
    def from_tensor(cls, packed: Tensor) -> Moments:
        """Inverse of :meth:`to_tensor`."""
        count, mean, m2 = packed.tolist()
        return cls(count, mean, m2)
