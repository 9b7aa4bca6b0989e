# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Causal attention over packed sequences for the local layer spec.

Megatron's local attention refuses packed (thd) input, and Transformer Engine needs a GPU. This
module takes their place in the ModuleSpec: sequences of similar length are padded to one block
and go through torch's scaled dot product attention together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from megatron.core.packed_seq_params import PackedSeqParams
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import MegatronModule
from torch import Tensor


@dataclass
class PackedSequences(PackedSeqParams):
    """Megatron's description of a pack, with the blocks of similar length computed once."""

    @cached_property
    def blocks(self) -> list[tuple[Tensor, Tensor]]:
        """(rows, valid) of every block: rows [B, L] index the pack, valid [B, L] marks real ones.

        A block pads its sequences to at most 1.5 times their length. Padding only ever stands
        behind a sequence, where causal attention cannot see it.
        """
        starts = self.cu_seqlens_q[:-1].long()
        lengths = self.cu_seqlens_q[1:].long() - starts
        order = torch.argsort(lengths, descending=True).tolist()
        sizes = lengths.tolist()
        blocks: list[tuple[Tensor, Tensor]] = []
        while order and sizes[order[0]] > 0:
            longest = sizes[order[0]]
            group = [i for i in order if sizes[i] * 3 >= longest * 2]
            order = order[len(group) :]
            index = torch.tensor(group, device=starts.device)
            steps = torch.arange(longest, device=starts.device)
            valid = steps[None, :] < lengths[index, None]
            rows = torch.where(valid, starts[index, None] + steps[None, :], 0)
            blocks.append((rows, valid))
        return blocks


class PackedAttention(MegatronModule):
    """Core attention of one layer: q [T, heads, d], k and v [T, groups, d] -> [T, heads * d]."""

    def __init__(
        self,
        config: TransformerConfig,
        layer_number: int,
        attn_mask_type: Any,
        attention_type: str,
        softmax_scale: float | None = None,
        **unused: Any,
    ) -> None:
        super().__init__(config=config)
        self.softmax_scale = softmax_scale

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        attn_mask_type: Any = None,
        attention_bias: Tensor | None = None,
        packed_seq_params: PackedSequences | None = None,
        **unused: Any,
    ) -> Tensor:
        if packed_seq_params is None:
            raise ValueError("PackedAttention needs packed_seq_params: MegaCURL packs every batch")
        output = query.new_zeros(query.shape[0], query.shape[1] * query.shape[2])
        for rows, valid in packed_seq_params.blocks:
            block = self._attend(query[rows], key[rows], value[rows])
            output = output.index_put((rows[valid],), block[valid])
        return output

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """[B, L, heads, d] -> [B, L, heads * d]."""
        out = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            is_causal=True,
            scale=self.softmax_scale,
            enable_gqa=key.shape[2] != query.shape[2],
        )
        return out.transpose(1, 2).flatten(2)
