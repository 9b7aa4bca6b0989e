# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Responses cut by the length limit: leave them out of the losses, or bootstrap their end."""

from __future__ import annotations

import torch
from torch import Tensor

from megacurl.algorithms.packed import check_packed, check_per_sequence, expand


def overlong_filter(mask: Tensor, truncated: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return ``mask`` with every token of a truncated response off (DAPO "Overlong Filtering").

    Args:
        mask: bool ``[T]``.
        truncated: bool ``[B]``.
        cu_seqlens: ``[B+1]``.
    """
    check_packed(mask, cu_seqlens)
    check_per_sequence(cu_seqlens, truncated=truncated)
    return mask & ~expand(truncated.bool(), cu_seqlens, mask.numel())


def truncation_bootstrap(truncated: Tensor | None, end_values: Tensor | None) -> Tensor:
    """Return ``[B]``: the critic's value of the end of truncated responses, 0 for finished ones.

    Raises:
        ValueError: when either vector is missing.
    """
    if truncated is None or end_values is None:
        raise ValueError(
            "truncation='bootstrap' needs truncated [B] and end_values [B] "
            "(the critic's value after the last token); or set truncation to 'terminal'"
        )
    if truncated.shape != end_values.shape:
        raise ValueError(
            f"truncated has shape {tuple(truncated.shape)} but end_values "
            f"{tuple(end_values.shape)}; give one entry a response"
        )
    return torch.where(truncated.bool(), end_values.detach(), 0.0)
