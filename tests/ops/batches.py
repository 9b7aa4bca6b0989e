# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Ragged batches for the operators: all the lengths at which a kernel's loops begin or end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

LENGTHS = (1, 0, 2, 5, 15, 16, 17, 33, 128, 0, 513, 1200, 2049, 6144)
MASKS = ("none", "random", "gaps", "off")


@dataclass
class Ragged:
    """A batch of sequences with random numbers; garbage stands at masked tokens."""

    lengths: Tensor
    mask: Tensor | None
    generator: torch.Generator

    @classmethod
    def of(cls, kind: str, lengths: tuple[int, ...] = LENGTHS) -> Ragged:
        """kind: no mask, random gaps, gaps of 50 tokens, or nothing valid."""
        generator = torch.Generator().manual_seed(len(kind))
        tokens = sum(lengths)
        masks = {
            "none": None,
            "random": torch.rand(tokens, generator=generator) > 0.3,
            "gaps": torch.arange(tokens) // 50 % 2 == 0,
            "off": torch.zeros(tokens, dtype=torch.bool),
        }
        return cls(torch.tensor(lengths), masks[kind], generator)

    @property
    def tokens(self) -> int:
        return int(self.lengths.sum())

    @property
    def valid(self) -> Tensor:
        return torch.ones(self.tokens, dtype=torch.bool) if self.mask is None else self.mask

    def cu_seqlens(self, dtype: torch.dtype = torch.int32) -> Tensor:
        return torch.nn.functional.pad(self.lengths.cumsum(0), (1, 0)).to(dtype)

    def noise(self, *, mean: float = 0.0, scale: float = 1.0) -> Tensor:
        """A token quantity, float32, NaN where masked."""
        x = mean + scale * torch.randn(self.tokens, generator=self.generator)
        return torch.where(self.valid, x, math.nan)

    def per_sequence(self) -> Tensor:
        return torch.rand(len(self.lengths), generator=self.generator)
