# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The shape of a decoder-only transformer, in one vocabulary for all families."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's frequency scaling; Megatron fixes its other constants (1, 4, 8192)."""

    factor: float


@dataclass(frozen=True)
class ModelShape:
    """What a family reads out of an HF config.json."""

    family: str
    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_query_groups: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rope_theta: float
    rope_scaling: RopeScaling | None
    norm_eps: float
    qkv_bias: bool
    tied: bool

    def padded_vocab_size(self, tp_size: int, divisible_by: int) -> int:
        """The vocabulary rounded up so that every rank holds the same number of rows."""
        multiple = tp_size * divisible_by
        return (self.vocab_size + multiple - 1) // multiple * multiple
