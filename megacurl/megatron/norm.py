# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""RMSNorm for the local layer spec; Megatron's own refuses sequence parallelism without a GPU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from megatron.core.transformer import TransformerConfig
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """Root mean square norm over the last dimension (Zhang and Sennrich 2019, Eq. 4).

    The signature is the one that Megatron's ModuleSpec calls. Under sequence parallelism every
    tensor parallel rank sees only its slice, so the weight is marked for Megatron to sum its
    gradient over those ranks.
    """

    def __init__(
        self, config: TransformerConfig, hidden_size: int, eps: float = 1e-5, **unused: Any
    ) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=config.params_dtype))
        self.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)
