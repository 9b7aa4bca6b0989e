# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""How token losses are averaged: one coefficient a token, from counts of the GLOBAL mini-batch.

A loss is ``sum_t coefficient_t * loss_t``. The coefficients are fixed before the mini-batch is cut,
so the sum over micro-batches and ranks is the same however it was cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from megacurl.algorithms.packed import check_packed, check_per_sequence, expand, select
from megacurl.algorithms.packed import valid_lengths as count_valid

LossAggMode = Literal[
    "token-mean",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
    "token-sum-norm",
    "prompt-mean-token-mean",
]


@dataclass(frozen=True)
class Denominators:
    """Counts over a global mini-batch (every rank, every micro-batch)."""

    tokens: int
    """Valid tokens."""
    sequences: int
    """Responses with at least one valid token."""
    correct_tokens: int = 0
    """Valid tokens of correct responses, for the positive LM loss (VAPO Eq. 9)."""
    prompts: int = 0
    """Questions with at least one valid token."""
    max_length: int | None = None
    """Response length limit, for the ``-norm`` modes."""

    @property
    def empty(self) -> bool:
        """No trainable token: coefficients are 0; skip the optimizer step and count it."""
        return self.tokens == 0


def global_denominators(
    valid_lengths: Tensor,
    *,
    correct: Tensor | None = None,
    group: Tensor | None = None,
    max_length: int | None = None,
) -> Denominators:
    """Count a global mini-batch from its per-trajectory vectors ``[N]``, gathered from all ranks.

    Args:
        valid_lengths: int ``[N]`` valid tokens of each trajectory.
        correct: bool ``[N]``; None leaves ``correct_tokens`` at 0.
        group: int ``[N]`` question index; None leaves ``prompts`` at 0.
        max_length: response length limit.
    """
    present = valid_lengths > 0
    counts = [valid_lengths.sum(), present.sum()]
    counts.append((valid_lengths * correct.long()).sum() if correct is not None else counts[0] * 0)
    tokens, sequences, correct_tokens = (int(c) for c in counts)
    prompts = int(torch.unique(group[present]).numel()) if group is not None else 0
    return Denominators(tokens, sequences, correct_tokens, prompts, max_length)


def prompt_token_counts(valid_lengths: Tensor, group: Tensor) -> Tensor:
    """Return, for each trajectory ``[N]``, the valid tokens of all responses to its question."""
    key = torch.unique(group, return_inverse=True)[1]
    totals = torch.zeros_like(valid_lengths).index_add(0, key, valid_lengths)
    return totals[key]


def token_coefficients(
    mask: Tensor,
    cu_seqlens: Tensor,
    mode: LossAggMode,
    denominators: Denominators,
    *,
    prompt_tokens: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the coefficient of every token of a (micro-)batch, ``[T]``; 0 at masked tokens.

    With n_i valid tokens in response i and N, sum n, P, L from ``denominators``:
    token-mean 1/sum n (VAPO Eq. 7, DAPO); seq-mean-token-mean 1/(N n_i) (GRPO, VC-PPO);
    seq-mean-token-sum 1/N; seq-mean-token-sum-norm 1/(N L) (Dr. GRPO); token-sum-norm 1/L;
    prompt-mean-token-mean 1/(P sum of n over the question) (DAPO Eq. 8 read literally).

    Args:
        mask: bool ``[T]``; responses are whole, so n_i is counted here.
        cu_seqlens: ``[B+1]``.
        mode: the rule.
        denominators: of the global mini-batch that this one is a part of.
        prompt_tokens: ``[B]`` from :func:`prompt_token_counts`, for ``prompt-mean-token-mean``.
        dtype: of the result.

    Raises:
        ValueError: for an unknown mode, or a count that the mode needs and did not get.
    """
    check_packed(mask, cu_seqlens)
    if denominators.empty:
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    divisor = _divisor(mask, cu_seqlens, mode, denominators, prompt_tokens)
    if isinstance(divisor, Tensor):
        # A response without valid tokens has no token to weigh; 1 only avoids a division by 0.
        per_token = expand(1.0 / divisor.clamp(min=1).double(), cu_seqlens, mask.numel())
        return select(per_token, mask).to(dtype)
    return mask.to(dtype) * (1.0 / divisor)


def aggregate(token_values: Tensor, mask: Tensor, coefficients: Tensor) -> Tensor:
    """Return sum_t coefficient_t x_t over valid tokens, a scalar: this batch's part of a loss."""
    return (coefficients * select(token_values, mask)).sum()


def _divisor(
    mask: Tensor,
    cu_seqlens: Tensor,
    mode: LossAggMode,
    denominators: Denominators,
    prompt_tokens: Tensor | None,
) -> float | Tensor:
    if mode == "token-mean":
        return denominators.tokens
    if mode == "seq-mean-token-mean":
        return denominators.sequences * count_valid(mask, cu_seqlens)
    if mode == "seq-mean-token-sum":
        return denominators.sequences
    if mode in ("seq-mean-token-sum-norm", "token-sum-norm"):
        limit = denominators.max_length
        if limit is None or limit <= 0:
            raise ValueError(
                f"loss_agg_mode {mode} divides by the response length limit, which is {limit}; "
                "give max_length to global_denominators"
            )
        return limit if mode == "token-sum-norm" else denominators.sequences * limit
    if mode == "prompt-mean-token-mean":
        if prompt_tokens is None or denominators.prompts == 0:
            raise ValueError(
                f"loss_agg_mode {mode} needs the questions of the batch; give group to "
                "global_denominators and prompt_tokens from prompt_token_counts"
            )
        check_per_sequence(cu_seqlens, prompt_tokens=prompt_tokens)
        return denominators.prompts * prompt_tokens
    raise ValueError(f"loss_agg_mode is {mode!r}; see LossAggMode for the modes offered")
