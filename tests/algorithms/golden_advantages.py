# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Golden quantities up to the weighted advantage."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from megacurl.algorithms.advantages import (
    actor_lambda,
    apply_weights,
    trajectory_weights,
)
from megacurl.algorithms.gae import gae, length_adaptive_lambda, place_outcome
from megacurl.algorithms.kl import kl_in_reward
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.stochasticity import group_mean_spread, stochasticity_weight, value_spread
from megacurl.algorithms.truncation import overlong_filter
from megacurl.algorithms.whiten import whiten
from megacurl.config.schema import AlgorithmConfig, CVPOConfig
from megacurl.curriculum.difficulty import difficulty_weight
from tests.algorithms.batches import advantages_and_targets
from tests.algorithms.golden_support import Inputs, Outputs, Packed


def group_index(groups: list[Any]) -> Tensor:
    return torch.tensor([groups.index(g) for g in groups])


def run_gae(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of([i["mask"]], dtype)
    advantages, returns = gae(
        batch.tokens([i["values"]]),
        batch.raw_tokens([i["rewards"]]),
        batch.mask,
        batch.cu_seqlens,
        gamma=i["gamma"],
        lam=i["lam"],
        bootstrap=torch.tensor([i["bootstrap"]], dtype=dtype),
        masked_reward=i.get("masked_reward", "error"),
    )
    return {"advantages": advantages.tolist(), "returns": returns.tolist()}


def run_length_adaptive_lambda(i: Inputs, dtype: torch.dtype) -> Outputs:
    return {"lam": length_adaptive_lambda(torch.tensor([i["length"]]), i["alpha"]).item()}


def run_vapo_advantages(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    outcome = torch.tensor(i["outcome"], dtype=dtype)
    config = AlgorithmConfig(
        gamma=i["gamma"], length_adaptive_alpha=i["alpha"], lam_critic=i["lam_critic"]
    )
    advantages, returns = advantages_and_targets(
        batch.tokens(i["values"]), outcome, batch.mask, batch.cu_seqlens, config
    )
    rewards = place_outcome(outcome, batch.mask, batch.cu_seqlens)
    lam = actor_lambda(valid_lengths(batch.mask, batch.cu_seqlens), config)
    assert isinstance(lam, Tensor)
    return {
        "token_rewards": batch.ragged(rewards),
        "lam_policy": lam.tolist(),
        "advantages": batch.ragged(advantages),
        "returns": batch.ragged(returns),
    }


def run_decoupled_gae(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    values, rewards = batch.tokens(i["values"]), batch.tokens(i["token_rewards"])
    layout = (values, rewards, batch.mask, batch.cu_seqlens)
    advantages, _ = gae(*layout, gamma=i["gamma"], lam=i["lam_policy"])
    _, returns = gae(*layout, gamma=i["gamma"], lam=i["lam_critic"])
    return {"advantages": batch.ragged(advantages), "returns": batch.ragged(returns)}


def run_orz_advantages(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    outcome = torch.tensor(i["outcome"], dtype=dtype)
    rewards = place_outcome(outcome, batch.mask, batch.cu_seqlens)
    advantages, returns = gae(
        batch.tokens(i["values"]), rewards, batch.mask, batch.cu_seqlens, gamma=1.0, lam=1.0
    )
    whitened = whiten(advantages, batch.mask, Moments.of(advantages, batch.mask), **i["whiten"])
    return {
        "advantages": batch.ragged(advantages),
        "returns": batch.ragged(returns),
        "whitened": batch.ragged(whitened),
    }


def run_kl_in_reward(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    rewards = kl_in_reward(
        batch.raw_tokens(i["token_rewards"]),
        batch.tokens(i["old_logp"]),
        batch.tokens(i["ref_logp"]),
        batch.mask,
        kl_coef=i["beta"],
        estimator=i["kind"],
    )
    return {"token_rewards": batch.ragged(rewards)}


def run_whiten(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    x = batch.tokens(i["x"])
    y = whiten(
        x,
        batch.mask,
        Moments.of(x, batch.mask),
        ddof=i["ddof"],
        eps=i["eps"],
        eps_mode=i["eps_mode"],
        shift_mean=i["shift_mean"],
    )
    return {"y": batch.ragged(y)}


def run_overlong_filter(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    truncated = torch.tensor(i["truncated"]).bool()
    mask = overlong_filter(batch.mask, truncated, batch.cu_seqlens)
    return {"masks": batch.ragged(mask.int())}


def run_value_std(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of([i["mask"]], dtype)
    values = batch.tokens([i["values"]])
    result: Outputs = {}
    for stat in ("std", "var"):
        for ddof in (0, 1):
            spread = value_spread(values, batch.mask, batch.cu_seqlens, stat=stat, ddof=ddof)
            result[f"{stat}_ddof{ddof}"] = spread.item()
    return result


def run_group_means(i: Inputs, dtype: torch.dtype) -> Outputs:
    stats, correct = torch.tensor(i["stats"], dtype=dtype), torch.tensor(i["correct"]).bool()
    group = group_index(i["groups"])
    return {
        over: group_mean_spread(stats, group, correct, over=over).tolist()
        for over in ("group", "group_by_outcome", "batch")
    }


def _weight(stats: Tensor, mu: Tensor, correct: Tensor, i: Inputs) -> Tensor:
    return stochasticity_weight(
        stats,
        mu,
        correct,
        alpha_p=i["alpha_p"],
        alpha_n=i["alpha_n"],
        lambda_p=i["lam_p"],
        lambda_n=i["lam_n"],
        direction=i.get("direction", "equation"),
        scale=i.get("scale", "raw"),
    )


def run_w_s_batch(i: Inputs, dtype: torch.dtype) -> Outputs:
    stats, correct = torch.tensor(i["stats"], dtype=dtype), torch.tensor(i["correct"]).bool()
    mu = group_mean_spread(stats, group_index(i["groups"]), correct, over=i.get("mu_set", "group"))
    return {"mu": mu.tolist(), "w_s": _weight(stats, mu, correct, i).tolist()}


def run_w_s(i: Inputs, dtype: torch.dtype) -> Outputs:
    stat, mu = (torch.tensor([i[name]], dtype=dtype) for name in ("stat", "mu"))
    return {"w_s": _weight(stat, mu, torch.tensor([bool(i["correct"])]), i).item()}


def cvpo_config(i: Inputs) -> CVPOConfig:
    return CVPOConfig(
        use_w_s=i.get("use_s", True),
        use_w_d=i.get("use_d", True),
        ws_alpha_p=i["alpha_p"],
        ws_alpha_n=i["alpha_n"],
        ws_lambda_p=i["lam_p"],
        ws_lambda_n=i["lam_n"],
        ws_stat=i.get("stat", "std"),
        ws_ddof=i.get("ddof", 0),
        ws_mu=i.get("mu_set", "group"),
        ws_direction=i.get("direction", "equation"),
        ws_scale=i.get("scale", "raw"),
    )


def cvpo_weights(batch: Packed, i: Inputs) -> tuple[Tensor, Tensor, Outputs]:
    """Return W_S and W_D of a golden batch, and the quantities on the way."""
    config = cvpo_config(i)
    correct = torch.tensor(i["correct"]).bool()
    group = group_index(i["groups"])
    spread = value_spread(
        batch.tokens(i["values"]),
        batch.mask,
        batch.cu_seqlens,
        stat=config.ws_stat,
        ddof=config.ws_ddof,
    )
    mu = group_mean_spread(spread, group, correct, over=config.ws_mu)
    rho = torch.tensor([i["rho"][str(g)] for g in i["groups"]], dtype=batch.dtype)
    difficulty = difficulty_weight(rho, i["phase"])
    w_s, w_d = trajectory_weights(spread, group, correct, difficulty, config)
    parts = {"sigma": spread.tolist(), "w_s": w_s.tolist(), "w_d": w_d.tolist()}
    return w_s, w_d, {**parts, "mu": mu.tolist(), "mu_k": mu.tolist()}


def run_cvpo_advantages(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    config = AlgorithmConfig(
        gamma=i["gamma"], length_adaptive_alpha=i["alpha_len"], lam_critic=i["lam_critic"]
    )
    base, returns = advantages_and_targets(
        batch.tokens(i["values"]),
        torch.tensor(i["outcome"], dtype=dtype),
        batch.mask,
        batch.cu_seqlens,
        config,
    )
    w_s, w_d, parts = cvpo_weights(batch, i)
    lam = actor_lambda(valid_lengths(batch.mask, batch.cu_seqlens), config)
    assert isinstance(lam, Tensor)
    advantages = apply_weights(base, w_s, w_d, batch.cu_seqlens)
    return parts | {
        "lam_policy": lam.tolist(),
        "base": batch.ragged(base),
        "advantages": batch.ragged(advantages),
        "returns": batch.ragged(returns),
    }
