# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sampling one token a row, where a row's randomness is its seed and position and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.rollout.hashing import GOLDEN_GAMMA, mix64_

_UNIFORM_BITS = 48


def counter_uniform(seeds: Tensor, counters: Tensor) -> Tensor:
    """Uniform numbers in (0, 1) that are a pure function of (seed, counter).

    Counter-based generation (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11)
    with the SplitMix64 mixer: no generator state has to follow a row through batches.

    Args:
        seeds: int64 [B].
        counters: int64, broadcastable to ``seeds``; the number of tokens generated before.

    Returns:
        float64 [B], multiples of 2**-48 shifted by half a step, so never 0 or 1.
    """
    # Two rounds: seeds that differ by a constant must not give shifted copies of one stream.
    state = mix64_(seeds ^ GOLDEN_GAMMA) + (counters + 1) * GOLDEN_GAMMA
    bits = (mix64_(state) >> (64 - _UNIFORM_BITS)) & ((1 << _UNIFORM_BITS) - 1)
    return (bits.double() + 0.5) * 2.0**-_UNIFORM_BITS


@dataclass(frozen=True, slots=True)
class RowSampling:
    """Sampling settings of the rows of a batch.

    Args:
        temperature: float32 [B]; 1 for greedy rows.
        greedy: bool [B].
        top_k: int64 [B]; 0 is off.
        top_p: float32 [B]; 1 is off.
        any_greedy: whether some row is greedy.
        any_filter: whether some row has top-k or top-p on.
    """

    temperature: Tensor
    greedy: Tensor
    top_k: Tensor
    top_p: Tensor
    any_greedy: bool
    any_filter: bool


def sample_tokens(logits: Tensor, rows: RowSampling, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Draw from the processed distribution by inverting its cumulative sum.

    Args:
        logits: float32 [B, V], overwritten; banned tokens are -inf.
        rows: settings for the B rows.
        uniforms: float64 [B] in (0, 1), see ``counter_uniform``.

    Returns:
        token ids int64 [B], and their float32 [B] log-probabilities under the processed
        distribution. A row without a finite distribution has a NaN log-probability.
    """
    scaled = logits.div_(rows.temperature[:, None])
    if rows.any_filter:
        scaled = filter_top_k_top_p(scaled, rows.top_k, rows.top_p)
    log_probs = scaled.log_softmax(-1)
    tokens = invert_cdf(log_probs, uniforms)
    if rows.any_greedy:
        tokens = torch.where(rows.greedy, scaled.argmax(-1), tokens)
    return tokens, log_probs.gather(1, tokens[:, None]).squeeze(1)


def invert_cdf(log_probs: Tensor, uniforms: Tensor) -> Tensor:
    """The tokens at which the cumulative probability passes a uniform number.

    Args:
        log_probs: float32 [B, V], normalised.
        uniforms: float64 [B] in (0, 1).

    Returns:
        int64 [B] in [0, V), whatever stands in a row that is not finite.
    """
    # float64: with a large vocabulary a float32 sum drifts by more than a rare token's mass.
    cdf = log_probs.exp().cumsum(-1, dtype=torch.float64)
    target = cdf[:, -1:] * uniforms[:, None]
    # The first entry above the target: a token of probability 0 repeats its predecessor's entry.
    tokens = torch.searchsorted(cdf, target, right=True).squeeze(1)
    return tokens.clamp_(max=log_probs.shape[1] - 1)


def filter_top_k_top_p(logits: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """Set tokens outside the top k, then outside the nucleus, to -inf.

    The nucleus is the smallest set of likeliest tokens whose mass, renormalised after top-k,
    reaches top_p; the likeliest token always stays (Holtzman et al. 2020, eq. 2). Equal logits
    are taken in order of their id.

    Args:
        logits: float [B, V], already divided by the temperature.
        top_k: int64 [B]; 0 is off.
        top_p: float [B]; 1 is off.
    """
    ordered, index = logits.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(logits.shape[1], device=logits.device)
    ordered = ordered.masked_fill((top_k[:, None] > 0) & (rank >= top_k[:, None]), -torch.inf)
    probs = ordered.softmax(-1)
    mass_before = probs.cumsum(-1, dtype=torch.float64) - probs
    # The comparison is skipped at top_p = 1, where rounding could cut a tail that must stay.
    outside = (top_p[:, None] < 1.0) & (mass_before >= top_p[:, None])
    ordered = ordered.masked_fill(outside, -torch.inf)
    return torch.empty_like(logits).scatter_(1, index, ordered)
