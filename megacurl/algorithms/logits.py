# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Log-probs and entropy from full logits, the reference for the vocab-parallel version."""

from __future__ import annotations

import torch
from torch import Tensor


def log_probs_from_logits(logits: Tensor, tokens: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return log softmax(logits / temperature) at ``tokens``, ``[T]``, at least float32.

    Args:
        logits: ``[T, V]``.
        tokens: int64 ``[T]``.
        temperature: that of the sampling; positive.
    """
    log_probs = _log_softmax(logits, temperature)
    return log_probs.gather(-1, tokens.long().unsqueeze(-1)).squeeze(-1)


def entropy_from_logits(logits: Tensor, *, temperature: float = 1.0) -> Tensor:
    """Return the entropy (nats) of softmax(logits / temperature), ``[T]``, at least float32.

    Logits of -inf (padded vocabulary) are outcomes of probability 0: no term, no gradient.
    """
    log_probs = _log_softmax(logits, temperature)
    finite = torch.where(log_probs == -torch.inf, 0.0, log_probs)
    return -(log_probs.exp() * finite).sum(-1)


def _log_softmax(logits: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}; it must be positive")
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    return torch.log_softmax(logits / temperature, dim=-1)
