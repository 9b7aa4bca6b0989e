# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The clipped policy loss of PPO: clip-higher, dual clip, and GSPO's ratio of whole responses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.aggregation import aggregate
from megacurl.algorithms.packed import expand, segment_mean, select
from megacurl.ops import usable

LARGEST_LOG_RATIO = 80.0
"""The compiled operator's exponential is made for numbers up to this."""


@dataclass(frozen=True)
class PolicyStats:
    """Sums over valid tokens (0-dim tensors), to be merged over micro-batches and ranks.

    All fields add up except ``max_ratio_gap``, which takes the maximum.
    """

    tokens: Tensor
    clipped: Tensor
    """Tokens whose gradient the clip range removed."""
    dual_clipped: Tensor
    approx_kl: Tensor
    """Sum of old - new log-prob (k1 of KL(old || new) on samples of old)."""
    max_ratio_gap: Tensor
    """Largest |ratio - 1|."""

    def merge(self, other: PolicyStats) -> PolicyStats:
        """Combine the statistics of two disjoint parts of a batch."""
        return PolicyStats(
            self.tokens + other.tokens,
            self.clipped + other.clipped,
            self.dual_clipped + other.dual_clipped,
            self.approx_kl + other.approx_kl,
            torch.maximum(self.max_ratio_gap, other.max_ratio_gap),
        )

    def metrics(self) -> dict[str, float]:
        """Return per-token means as plain numbers (0 for a batch without valid tokens)."""
        tokens = max(float(self.tokens), 1.0)
        return {
            "clip_frac": float(self.clipped) / tokens,
            "dual_clip_frac": float(self.dual_clipped) / tokens,
            "approx_kl": float(self.approx_kl) / tokens,
            "max_ratio_gap": float(self.max_ratio_gap),
        }


def policy_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    coefficients: Tensor,
    *,
    eps_clip: float,
    eps_clip_high: float,
    dual_clip: float | None = None,
    log_ratio_clamp: float = 20.0,
    sequences: Tensor | None = None,
    token_weights: Tensor | None = None,
) -> tuple[Tensor, PolicyStats]:
    """Return this batch's part of the policy loss (a scalar) and its statistics.

    With r = exp(clamp(log_probs - old)) the token loss is -min(r A, clip(r, 1-eps, 1+eps_high) A)
    (PPO; VAPO Eq. 7), and for A < 0 at most -dual_clip A. On the edge of a range the gradient is
    the full -r A; beyond it, and beyond the clamp, it is 0.

    Args:
        log_probs: ``[T]`` at the sampling temperature, differentiable.
        old_log_probs: ``[T]`` of the policy at the start of the update.
        advantages: ``[T]``, weighted where the algorithm weighs; constants.
        mask: bool ``[T]``.
        coefficients: ``[T]`` from :func:`~megacurl.algorithms.aggregation.token_coefficients`.
        eps_clip: lower clip range, in [0, 1].
        eps_clip_high: upper clip range, at least 0.
        dual_clip: bound c > 1 of dual-clip PPO, or None.
        log_ratio_clamp: largest |log ratio| that is exponentiated; keeps the loss finite.
        sequences: cu_seqlens ``[B+1]`` for the ratio of whole responses (GSPO): the geometric
            mean of its tokens' ratios, see :func:`sequence_log_ratio`. None: every token its own.
        token_weights: ``[T]`` constant factors of the token losses
            (:func:`~megacurl.algorithms.importance.importance_weights`), or None.
    """
    if not 0 <= eps_clip <= 1 or not eps_clip_high >= 0:
        raise ValueError(
            f"eps_clip={eps_clip}, eps_clip_high={eps_clip_high}; "
            "the first must lie in [0, 1], the second be at least 0"
        )
    if dual_clip is not None and not dual_clip > 1:
        raise ValueError(f"dual_clip is {dual_clip}; it must be above 1, or None")
    if not log_ratio_clamp > 0:
        raise ValueError(f"log_ratio_clamp is {log_ratio_clamp}; it must be positive")
    constants = [old_log_probs, advantages, coefficients]
    constants += [] if token_weights is None else [token_weights]
    fits = sequences is None and log_ratio_clamp <= LARGEST_LOG_RATIO
    if fits and _operator_takes(log_probs, mask, constants):
        loss, sums, _ = torch.ops.megacurl.policy_loss(
            log_probs.contiguous(),
            old_log_probs.detach().contiguous(),
            advantages.detach().contiguous(),
            mask.contiguous(),
            coefficients.detach().contiguous(),
            None if token_weights is None else token_weights.detach().contiguous(),
            None,
            *(eps_clip, eps_clip_high, dual_clip or 0.0, log_ratio_clamp),
        )
        return loss, _stats_of(sums)
    log_ratio = select(log_probs - old_log_probs.detach(), mask)
    adv = select(advantages.detach(), mask)
    exponent = log_ratio if sequences is None else sequence_log_ratio(log_ratio, mask, sequences)
    ratio = exponent.clamp(-log_ratio_clamp, log_ratio_clamp).exp()

    above = (ratio > 1 + eps_clip_high) & (adv > 0)
    below = (ratio < 1 - eps_clip) & (adv < 0)
    token_loss = torch.where(above, -(1 + eps_clip_high) * adv, -ratio * adv)
    token_loss = torch.where(below, -(1 - eps_clip) * adv, token_loss)
    bounded = torch.zeros_like(above)
    if dual_clip is not None:
        bounded = (ratio > dual_clip) & (adv < 0)
        token_loss = torch.where(bounded, -dual_clip * adv, token_loss)
    if token_weights is not None:
        token_loss = token_loss * select(token_weights.detach(), mask)

    gap = (ratio.detach() - 1).abs()
    stats = PolicyStats(
        tokens=mask.sum(),
        clipped=(above | below).sum(),
        dual_clipped=bounded.sum(),
        approx_kl=-log_ratio.detach().sum(),
        max_ratio_gap=gap.max() if gap.numel() else gap.new_zeros(()),
    )
    return aggregate(token_loss, mask, coefficients), stats


def sequence_log_ratio(log_ratio: Tensor, mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return, at every token, the mean log ratio of its response; ``[T]``, 0 at masked tokens.

    The gradient is passed straight to the token's own log ratio (GSPO-token). Averaged over the
    response that is GSPO's gradient where the advantage is the same for all its tokens, and where
    it is not, every token still learns from its own.

    Args:
        log_ratio: ``[T]``, 0 at masked tokens, differentiable.
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.
    """
    value = log_ratio.detach()
    mean = expand(segment_mean(value, mask, cu_seqlens), cu_seqlens, mask.numel())
    return select(mean + (log_ratio - value), mask)


def _operator_takes(log_probs: Tensor, mask: Tensor, constants: list[Tensor]) -> bool:
    """Whether the shapes, types and devices are those of the compiled operator."""
    return (
        log_probs.dim() == 1
        and mask.dtype == torch.bool
        and all(t.shape == log_probs.shape for t in (mask, *constants))
        and mask.device == log_probs.device
        and usable(log_probs, *constants)
    )


def _stats_of(sums: Tensor) -> PolicyStats:
    """Read the operator's columns (PolicyStat in csrc/include/megacurl/api.h)."""
    _, tokens, high, low, dual, k1, _, _, _, largest, smallest = sums.unbind()
    return PolicyStats(tokens, high + low, dual, k1, torch.maximum(largest - 1, 1 - smallest))
