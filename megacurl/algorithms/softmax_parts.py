# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What one rank's part of the vocabulary adds to log-probs and entropies, and its gradient.

With z = logits / temperature, p the softmax over all ranks and H its entropy:
d log p_y / dz_j = 1[j = y] - p_j and dH / dz_j = -p_j (log p_j + H).
"""

from __future__ import annotations

import torch
from torch import Tensor

from megacurl.ops import usable

NO_LOGIT = -1e30
"""The largest of no logits; finite, so that nothing becomes inf - inf."""


def softmax_sums(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """Return fp32 ``[4, R]``: max z, sum exp(z - max), sum (z - max) exp(z - max), z of the target.

    The last is 0 where the target is on another rank. A logit of -inf is no outcome.

    Args:
        logits: ``[R, V]`` float32 or bfloat16, this rank's columns.
        targets: int64 ``[R]``, column of the target; outside [0, V) it is on another rank.
        temperature: positive.
    """
    if _operator_takes(logits, targets):
        sums: Tensor = torch.ops.megacurl.log_prob_sums(
            logits.contiguous(), targets.contiguous(), temperature
        )
        return sums
    z = logits.float() / temperature
    columns = z.shape[1]
    top = z.amax(dim=1) if columns else z.new_full((len(z),), NO_LOGIT)
    gap = z - top[:, None]
    exps = gap.exp()
    weighted = torch.where(exps == 0, 0.0, gap * exps).sum(1)
    picked = torch.zeros_like(top)
    rows = ((targets >= 0) & (targets < columns)).nonzero()[:, 0]
    picked[rows] = z[rows, targets[rows]]
    return torch.stack([top, exps.sum(1), weighted, picked])


def softmax_grad(
    logits: Tensor,
    targets: Tensor,
    temperature: float,
    normalizer: Tensor,
    entropy: Tensor,
    grad_log_prob: Tensor,
    grad_entropy: Tensor,
) -> Tensor:
    """Return the gradient by the logits, ``[R, V]`` in their type.

    Args:
        logits, targets, temperature: as in :func:`softmax_sums`.
        normalizer: fp32 ``[R]`` log sum exp z over all ranks.
        entropy: fp32 ``[R]`` H.
        grad_log_prob, grad_entropy: fp32 ``[R]`` of what came out of forward.
    """
    if _operator_takes(logits, targets):
        rows_of = (normalizer, entropy, grad_log_prob.float(), grad_entropy.float())
        grad: Tensor = torch.ops.megacurl.log_prob_grad(
            logits.contiguous(),
            targets.contiguous(),
            *(x.contiguous() for x in rows_of),
            temperature,
        )
        return grad
    log_p = logits.float() / temperature - normalizer[:, None]
    p = log_p.exp()
    by_log_prob, by_entropy = grad_log_prob[:, None], grad_entropy[:, None]
    slope = -p * (by_log_prob + by_entropy * (log_p + entropy[:, None]))
    slope = torch.where(p == 0, 0.0, slope)
    rows = ((targets >= 0) & (targets < logits.shape[1])).nonzero()[:, 0]
    slope[rows, targets[rows]] += grad_log_prob[rows]
    return (slope / temperature).to(logits.dtype)


def _operator_takes(logits: Tensor, targets: Tensor) -> bool:
    return (
        logits.dtype in (torch.float32, torch.bfloat16)
        and targets.dtype == torch.int64
        and usable(logits, targets, dtype=None)
    )
