# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Estimators of KL(policy || reference) from sampled log-probs, in the loss or in the reward."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from megacurl.algorithms.aggregation import aggregate
from megacurl.algorithms.packed import select

KLEstimator = Literal["k1", "k2", "k3"]

LOG_RATIO_CLAMP = 20.0
"""Largest |log ratio| that enters an estimator, as in the policy loss; keeps exp() finite."""


def kl_estimate(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    estimator: KLEstimator,
    *,
    input_clamp: float | None = LOG_RATIO_CLAMP,
    output_clamp: float | None = None,
) -> Tensor:
    """Return the token estimate with x = log_probs - ref: k1 = x, k2 = x^2/2, k3 = e^-x + x - 1.

    k1 and k3 are unbiased as values; only k2 has the right expected gradient when it is a loss.

    Args:
        log_probs: any shape.
        ref_log_probs: the same shape; constants.
        estimator: ``k1``, ``k2`` or ``k3``.
        input_clamp: bound on |x|, None for none; gradient 0 beyond it.
        output_clamp: bound on the absolute estimate, None for none; gradient 0 beyond it.
    """
    x = log_probs - ref_log_probs.detach()
    if input_clamp is not None:
        x = x.clamp(-input_clamp, input_clamp)
    if estimator == "k1":
        estimate = x
    elif estimator == "k2":
        estimate = 0.5 * x.square()
    elif estimator == "k3":
        estimate = torch.expm1(-x) + x
    else:
        raise ValueError(f"kl_estimator is {estimator!r}; use 'k1', 'k2' or 'k3'")
    if output_clamp is not None:
        estimate = estimate.clamp(-output_clamp, output_clamp)
    return estimate


def kl_loss(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    coefficients: Tensor,
    *,
    estimator: KLEstimator,
    input_clamp: float | None = LOG_RATIO_CLAMP,
    output_clamp: float | None = None,
) -> Tensor:
    """Return this batch's part of the KL loss, a scalar; the factor kl_coef is not applied here."""
    estimate = kl_estimate(
        select(log_probs, mask),
        select(ref_log_probs, mask),
        estimator,
        input_clamp=input_clamp,
        output_clamp=output_clamp,
    )
    return aggregate(estimate, mask, coefficients)


def kl_penalty(
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    *,
    kl_coef: float,
    estimator: KLEstimator,
    input_clamp: float | None = LOG_RATIO_CLAMP,
) -> Tensor:
    """Return kl_coef times the estimate at valid tokens, 0 elsewhere, ``[T]``; a constant."""
    old = select(old_log_probs.detach(), mask)
    ref = select(ref_log_probs, mask)
    return kl_coef * select(kl_estimate(old, ref, estimator, input_clamp=input_clamp), mask)


def kl_in_reward(
    rewards: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    mask: Tensor,
    *,
    kl_coef: float,
    estimator: KLEstimator,
    input_clamp: float | None = LOG_RATIO_CLAMP,
) -> Tensor:
    """Return token rewards ``[T]`` less the KL penalty of the rollout's policy (PPO).

    Rewards at masked tokens are left as they are, so that a stray one is still noticed.
    """
    return rewards - kl_penalty(
        old_log_probs,
        ref_log_probs,
        mask,
        kl_coef=kl_coef,
        estimator=estimator,
        input_clamp=input_clamp,
    )
