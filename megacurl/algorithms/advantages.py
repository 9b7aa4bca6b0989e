# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Around the advantage estimator: targets of the critic, whitening, and CVPO's weights.

Order (CVPO Eq. 27): estimator, then whitening where it is on, then W_S * W_D. Targets of the
critic, the positive LM loss and the KL are not weighted.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from megacurl.algorithms.gae import gae, length_adaptive_lambda
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.packed import check_per_sequence, expand
from megacurl.algorithms.responses import Responses
from megacurl.algorithms.stochasticity import group_mean_spread, stochasticity_weight
from megacurl.algorithms.truncation import truncation_bootstrap
from megacurl.algorithms.whiten import whiten
from megacurl.config.schema import AlgorithmConfig, CVPOConfig
from megacurl.ops import usable


def responses_gae(
    responses: Responses, config: AlgorithmConfig, lam: float | Tensor
) -> tuple[Tensor, Tensor]:
    """Return advantages and returns of GAE with ``lam``, both ``[T]`` and 0 at masked tokens.

    Args:
        responses: with values; with ``truncation='bootstrap'`` also truncated and end_values.
        config: gamma, truncation, rewards on masked tokens.
        lam: one number, or one a response ``[B]``.

    Raises:
        ValueError: when the responses have no values, or not what the truncation needs.
    """
    if responses.values is None:
        raise ValueError("GAE needs values of a critic; set use_critic, or another estimator")
    bootstrap = None
    if config.truncation == "bootstrap":
        bootstrap = truncation_bootstrap(responses.truncated, responses.end_values)
    return gae(
        responses.values,
        responses.token_rewards(),
        responses.mask,
        responses.cu_seqlens,
        gamma=config.gamma,
        lam=lam,
        bootstrap=bootstrap,
        masked_reward=config.masked_reward,
    )


def critic_targets(
    responses: Responses, config: AlgorithmConfig, *, lam_critic: float | None = None
) -> Tensor:
    """Return what the critic learns, ``[T]``: A_t + V_t with its own lambda (VC-PPO).

    Args:
        responses: with values.
        config: the run's settings.
        lam_critic: overrides the config, e.g. 1.0 while the critic warms up on Monte-Carlo returns.
    """
    _, returns = responses_gae(
        responses, config, config.lam_critic if lam_critic is None else lam_critic
    )
    return returns


def whiten_advantages(
    advantages: Tensor,
    mask: Tensor,
    config: AlgorithmConfig,
    *,
    merge_moments: Callable[[Moments], Moments] | None = None,
) -> Tensor:
    """Return the advantages normalised over the rollout as ``whiten_advantages`` says, ``[T]``.

    Args:
        advantages: ``[T]``.
        mask: bool ``[T]``.
        config: the run's settings.
        merge_moments: turns this rank's moments of the advantages into the global batch's; None
            for a single rank. Only called when whitening is on, then on every rank.
    """
    if config.whiten_advantages == "off":
        return advantages
    moments = Moments.of(advantages, mask)
    if merge_moments is not None:
        moments = merge_moments(moments)
    if config.whiten_advantages == "sample":
        return whiten(advantages, mask, moments, ddof=1, eps_mode="add")
    return whiten(advantages, mask, moments, ddof=0, eps_mode="clamp")


def actor_lambda(lengths: Tensor, config: AlgorithmConfig) -> float | Tensor:
    """Return the actor's GAE lambda: length-adaptive ``[B]`` (VAPO) or the constant lam_policy."""
    if config.length_adaptive_alpha is None:
        return config.lam_policy
    return length_adaptive_lambda(lengths, config.length_adaptive_alpha)


def stochasticity_amplitudes(config: CVPOConfig) -> tuple[float, float]:
    """Return alpha_P and alpha_N: the separate settings, or else the variance coefficient.

    Raises:
        ValueError: when alpha_N is above 1, where W_S could turn negative.
    """
    common = config.variance_coefficient
    alpha_p = common if config.ws_alpha_p is None else config.ws_alpha_p
    alpha_n = common if config.ws_alpha_n is None else config.ws_alpha_n
    if alpha_p < 0 or not 0 <= alpha_n <= 1:
        raise ValueError(
            f"ws_alpha_p={alpha_p}, ws_alpha_n={alpha_n} (variance_coefficient={common}): "
            "ws_alpha_p must be at least 0 and ws_alpha_n in [0, 1], "
            "or wrong responses would be rewarded"
        )
    return alpha_p, alpha_n


def trajectory_weights(
    spread: Tensor,
    group: Tensor,
    correct: Tensor,
    difficulty: Tensor | None,
    config: CVPOConfig,
    *,
    score: Tensor | None = None,
    include: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return W_S and W_D of every trajectory of the batch, float64 ``[N]`` each.

    A weight that is switched off is 1. With ``normalize_w`` W_S is divided by the mean of
    W_S W_D, unless that is 0.

    Args:
        spread: ``[N]`` from :func:`~megacurl.algorithms.stochasticity.value_spread`, all ranks'.
        group: int ``[N]`` question index.
        correct: bool ``[N]``.
        difficulty: ``[N]`` W_D of each trajectory's question; may be None with ``use_w_d=False``.
        config: CVPO's settings.
        score: float ``[N]`` in [0, 1], what W_S goes by with ``ws_outcome='score'``. ``correct``
            still divides the groups of ``ws_mu='group_by_outcome'``.
        include: bool ``[N]``; trajectories left out (overlong filter) count in no mean.
    """
    w_s = torch.ones_like(spread, dtype=torch.float64)
    w_d = torch.ones_like(w_s)
    if config.use_w_s:
        alpha_p, alpha_n = stochasticity_amplitudes(config)
        mean_spread = group_mean_spread(spread, group, correct, over=config.ws_mu, include=include)
        w_s = stochasticity_weight(
            spread,
            mean_spread,
            _outcome(correct, score, config),
            alpha_p=alpha_p,
            alpha_n=alpha_n,
            lambda_p=config.ws_lambda_p,
            lambda_n=config.ws_lambda_n,
            direction=config.ws_direction,
            scale=config.ws_scale,
        )
    if config.use_w_d:
        if difficulty is None or difficulty.shape != spread.shape:
            found = None if difficulty is None else tuple(difficulty.shape)
            raise ValueError(
                f"difficulty has shape {found} for {spread.numel()} trajectories; "
                "give W_D of each, or set use_w_d to False"
            )
        w_d = difficulty.to(w_d)
    if config.normalize_w:
        product = w_s * w_d if include is None else (w_s * w_d)[include]
        mean = product.sort().values.mean() if product.numel() else product.new_zeros(())
        w_s = torch.where(mean > 0, w_s / mean, w_s)
    return w_s, w_d


def _outcome(correct: Tensor, score: Tensor | None, config: CVPOConfig) -> Tensor:
    if config.ws_outcome == "correct":
        return correct.bool()
    if config.ws_outcome != "score" or score is None or score.shape != correct.shape:
        found = None if score is None else tuple(score.shape)
        raise ValueError(
            f"ws_outcome is {config.ws_outcome!r} and score has shape {found} for "
            f"{correct.numel()} trajectories; use 'correct', or 'score' and give that of each"
        )
    return score


def apply_weights(
    advantages: Tensor, w_s: Tensor | None, w_d: Tensor | None, cu_seqlens: Tensor
) -> Tensor:
    """Return W_S W_D A on every token (CVPO Eq. 27), ``[T]``; weights ``[B]`` are constants."""
    weights = [w.detach() for w in (w_s, w_d) if w is not None]
    for name, weight in (("w_s", w_s), ("w_d", w_d)):
        if weight is not None:
            check_per_sequence(cu_seqlens, **{name: weight})
    if weights and not advantages.requires_grad and usable(advantages):
        first, *rest = [w.to(advantages.device, torch.float64).contiguous() for w in weights]
        weighted: Tensor = torch.ops.megacurl.apply_weights(
            advantages.contiguous(), first, rest[0] if rest else None, cu_seqlens.contiguous()
        )
        return weighted
    for weight in weights:
        factor = weight.to(advantages)
        advantages = advantages * expand(factor, cu_seqlens, advantages.numel())
    return advantages
