# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Correction for responses that other weights, or another engine, sampled (decoupled PPO, TIS).

mu is the policy that sampled, old the policy at the start of the update, theta the one trained.
The ratio theta/old is clipped in the policy loss; old/mu is the constant weight computed here.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from megacurl.algorithms.packed import (
    check_packed,
    expand,
    segment_mean,
    segment_sum,
    select,
)

Correction = Literal["decoupled", "behavior", "recompute"]
IsKind = Literal["tis", "icepop", "none"]
IsLevel = Literal["token", "sequence", "geometric"]

_LOG_RATIO_CLAMP = 20.0


def importance_weights(
    old_log_probs: Tensor,
    behaviour_log_probs: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    *,
    kind: IsKind = "tis",
    level: IsLevel = "token",
    low: float = 0.0,
    high: float = 2.0,
) -> Tensor:
    """Return w_t = pi_old/pi_mu, bounded, as constants ``[T]``; 0 at masked tokens.

    Args:
        old_log_probs: ``[T]`` of the policy at the start of the update.
        behaviour_log_probs: ``[T]`` of the policy that sampled.
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.
        kind: ``tis`` clamps w to [low, high], ``icepop`` drops tokens outside, ``none`` does
            neither.
        level: every token its own ratio, the product over its response, or that product's n-th
            root (n valid tokens).
        low, high: the bounds.

    Raises:
        ValueError: for an unknown ``kind`` or ``level``, or bounds out of order.
    """
    check_packed(
        mask, cu_seqlens, old_log_probs=old_log_probs, behaviour_log_probs=behaviour_log_probs
    )
    if kind not in ("tis", "icepop", "none") or level not in ("token", "sequence", "geometric"):
        raise ValueError(
            f"kind={kind!r}, level={level!r}; use 'tis', 'icepop' or 'none', and 'token', "
            "'sequence' or 'geometric'"
        )
    if not 0 <= low <= high:
        raise ValueError(f"low={low}, high={high}; they must satisfy 0 <= low <= high")
    log_ratio = select(old_log_probs.detach() - behaviour_log_probs.detach(), mask)
    if level != "token":
        reduce = segment_sum if level == "sequence" else segment_mean
        log_ratio = expand(reduce(log_ratio, mask, cu_seqlens), cu_seqlens, mask.numel())
    weight = log_ratio.clamp(-_LOG_RATIO_CLAMP, _LOG_RATIO_CLAMP).exp()
    if kind == "tis":
        weight = weight.clamp(low, high)
    elif kind == "icepop":
        weight = torch.where((weight >= low) & (weight <= high), weight, 0.0)
    return select(weight, mask)


def correct_staleness(
    old_log_probs: Tensor,
    behaviour_log_probs: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    *,
    correction: Correction,
    high: float = 2.0,
) -> tuple[Tensor, Tensor | None]:
    """Return the log-probs that the clipped ratio starts from, and the weights of the tokens.

    ``decoupled``: ratio to old, weighted by token-level TIS. ``behavior``: ratio to mu, no weight
    (with both, old/mu would count twice). ``recompute``: ratio to old, staleness ignored.

    Args:
        old_log_probs, behaviour_log_probs: ``[T]``.
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.
        correction: which of the three.
        high: TIS bound.
    """
    if correction == "decoupled":
        weights = importance_weights(
            old_log_probs, behaviour_log_probs, mask, cu_seqlens, high=high
        )
        return old_log_probs, weights
    if correction == "behavior":
        return behaviour_log_probs, None
    if correction == "recompute":
        return old_log_probs, None
    raise ValueError(f"correction is {correction!r}; use 'decoupled', 'behavior' or 'recompute'")
