# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VAPO's language-model loss on the responses the policy got right (VAPO Eq. 9)."""

from __future__ import annotations

import torch
from torch import Tensor

from megacurl.algorithms.packed import check_per_sequence, check_shapes, expand, select


def positive_lm_loss(
    log_probs: Tensor,
    mask: Tensor,
    correct: Tensor,
    cu_seqlens: Tensor,
    *,
    correct_tokens: int,
    weights: Tensor | None = None,
) -> Tensor:
    """Return this batch's part of -1/n times the log-probs of all correct responses, a scalar.

    The factor mu of the total loss is not applied here.

    Args:
        log_probs: ``[T]``, differentiable.
        mask: bool ``[T]``.
        correct: bool ``[B]`` from the verifier.
        cu_seqlens: ``[B+1]``.
        correct_tokens: n, valid tokens of the correct responses of the GLOBAL mini-batch
            (:class:`~megacurl.algorithms.aggregation.Denominators`); 0 gives loss 0.
        weights: ``[B]`` optional factors of the responses (``positive_lm_weighted``).

    Returns:
        A scalar that stays connected to ``log_probs``, also when it is 0.
    """
    check_shapes(mask, cu_seqlens, log_probs=log_probs)
    check_per_sequence(cu_seqlens, correct=correct)
    if correct_tokens < 0:
        raise ValueError(f"correct_tokens is {correct_tokens}; it counts tokens")
    chosen = mask & expand(correct.bool(), cu_seqlens, mask.numel())
    nll = -select(log_probs, chosen)
    if weights is not None:
        check_per_sequence(cu_seqlens, weights=weights)
        factors = expand(weights.detach().to(nll.dtype), cu_seqlens, mask.numel())
        nll = nll * torch.where(chosen, factors, 0.0)
    return nll.sum() * (1.0 / correct_tokens if correct_tokens else 0.0)
