# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The critic's output layer: one number per position."""

from __future__ import annotations

from typing import Any

import torch
from megatron.core.tensor_parallel import gather_from_sequence_parallel_region
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import MegatronModule
from torch import Tensor, nn


class ValueHead(MegatronModule):
    """hidden [T / SP, 1, h] -> values [T, 1, 1] in fp32, the same on every tensor parallel rank.

    It stands where a GPTModel has its ``output_layer`` and answers the same call. Under sequence
    parallelism it works on the rank's slice and gathers the values, not the hidden states, so each
    rank's weight gradient covers its slice only: the weight is marked for Megatron to sum them.
    No bias: a constant offset is what the last layer's norm and weight already give.
    """

    def __init__(self, config: TransformerConfig, init_std: float, device: torch.device) -> None:
        super().__init__(config=config)
        self.weight = nn.Parameter(
            torch.empty(1, config.hidden_size, dtype=config.params_dtype, device=device)
        )
        nn.init.normal_(self.weight, std=init_std) if init_std > 0 else nn.init.zeros_(self.weight)
        self.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]

    def forward(
        self, hidden: Tensor, weight: Tensor | None = None, runtime_gather_output: Any = None
    ) -> tuple[Tensor, None]:
        values = (hidden.float() @ self.weight.float().t()).contiguous()
        if self.config.sequence_parallel:
            # Every rank computes the same loss from the gathered values, so the gradient is split,
            # not summed.
            values = gather_from_sequence_parallel_region(values, tensor_parallel_output_grad=False)
        return values, None
