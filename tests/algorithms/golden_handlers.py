# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One function per golden quantity: golden names in, MegaCURL's public functions, numbers out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from megacurl.algorithms.advantages import (
    actor_lambda,
    apply_weights,
    trajectory_weights,
    value_advantages,
)
from megacurl.algorithms.aggregation import (
    Denominators,
    aggregate,
    global_denominators,
    prompt_token_counts,
    token_coefficients,
)
from megacurl.algorithms.gae import gae, length_adaptive_lambda, place_outcome
from megacurl.algorithms.kl import kl_estimate, kl_in_reward, kl_loss, kl_penalty
from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits
from megacurl.algorithms.metrics import explained_variance, value_pretrain_done
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.positive_lm import positive_lm_loss
from megacurl.algorithms.stochasticity import (
    group_mean_spread,
    stochasticity_weight,
    value_spread,
)
from megacurl.algorithms.truncation import overlong_filter
from megacurl.algorithms.value_loss import value_loss
from megacurl.algorithms.whiten import whiten
from megacurl.config.schema import AlgorithmConfig, CVPOConfig
from megacurl.curriculum.cvpo import CVPOCurriculum
from megacurl.curriculum.difficulty import difficulty_peak, difficulty_weight
from megacurl.curriculum.phase import PhaseSwitch
from megacurl.curriculum.posterior import BetaTracker
from megacurl.curriculum.trend import StagnationTest, stagnation_test
from tests.algorithms.golden_support import Packed

Inputs = dict[str, Any]
Outputs = dict[str, Any]
Handler = Callable[[Inputs, torch.dtype], Outputs]


def group_index(groups: list[Any]) -> Tensor:
    return torch.tensor([groups.index(g) for g in groups])


def coefficients(batch: Packed, i: Inputs, mode: str) -> tuple[Tensor, Denominators]:
    """Return token coefficients of a whole (global) batch, and its counts."""
    lengths = valid_lengths(batch.mask, batch.cu_seqlens)
    group = group_index(i["groups"]) if "groups" in i else None
    correct = torch.tensor(i["correct"], dtype=torch.bool) if "correct" in i else None
    denominators = global_denominators(
        lengths, correct=correct, group=group, max_length=i.get("max_len")
    )
    coefs = token_coefficients(
        batch.mask,
        batch.cu_seqlens,
        mode,  # type: ignore[arg-type]
        denominators,
        prompt_tokens=prompt_token_counts(lengths, group) if group is not None else None,
        dtype=batch.dtype,
    )
    return coefs, denominators


def gradient(loss: Tensor, leaf: Tensor) -> Tensor:
    return torch.autograd.grad(loss, leaf)[0]


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
    advantages, returns = value_advantages(
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


def run_value_std(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of([i["mask"]], dtype)
    values = batch.tokens([i["values"]])
    result: Outputs = {}
    for stat in ("std", "var"):
        for ddof in (0, 1):
            spread = value_spread(values, batch.mask, batch.cu_seqlens, stat=stat, ddof=ddof)  # type: ignore[arg-type]
            result[f"{stat}_ddof{ddof}"] = spread.item()
    return result


def run_group_means(i: Inputs, dtype: torch.dtype) -> Outputs:
    stats, correct = torch.tensor(i["stats"], dtype=dtype), torch.tensor(i["correct"]).bool()
    group = group_index(i["groups"])
    return {
        over: group_mean_spread(stats, group, correct, over=over).tolist()  # type: ignore[arg-type]
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


def run_w_d(i: Inputs, dtype: torch.dtype) -> Outputs:
    return {"w_d": difficulty_weight(torch.tensor(i["rho"], dtype=dtype), i["phase"]).tolist()}


def run_w_d_peak(i: Inputs, dtype: torch.dtype) -> Outputs:
    return dict(zip(("argmax", "max"), difficulty_peak(i["phase"]), strict=True))


def run_beta_tracker(i: Inputs, dtype: torch.dtype) -> Outputs:
    tracker = BetaTracker(tuple(i["prior"]), decay=i["decay"])
    rows = []
    for successes, attempts in i["updates"]:
        u = tracker.observe({"q": (successes, attempts)})["q"]
        row = {"s": u.successes, "k": u.attempts, "old": u.old_mean, "mean": u.mean}
        row |= {"delta": u.delta, "latest": u.latest, "alpha": u.alpha, "beta": u.beta}
        if len(rows) == 0:
            assert u.delta is None
        rows.append(row)
    return {"rows": rows}


def _test_fields(test: StagnationTest) -> Outputs:
    names = ("low_ok", "high_ok", "stagnant", "n_low", "n_high")
    return {name: getattr(test, name) for name in names}


def run_stagnation(i: Inputs, dtype: torch.dtype) -> Outputs:
    test = stagnation_test(
        i["means"],
        i["deltas"],
        aggregate=i["agg"],
        frac=i["frac"],
        empty_is_stagnant=i["empty"] == "true",
    )
    return _test_fields(test)


def run_phase_switch(i: Inputs, dtype: torch.dtype) -> Outputs:
    switch = PhaseSwitch(one_way=i["one_way"], patience=i["patience"], min_round=i["min_round"])
    return {"phase": [switch.step(bool(s)) for s in i["stagnant"]]}


def run_curriculum(i: Inputs, dtype: torch.dtype) -> Outputs:
    settings: dict[str, Any] = {
        "trend_scope": i["scope"],
        "trend_aggregate": i["agg"],
        "trend_empty": i["empty"],
        "phase_one_way": i["one_way"],
        "wd_rho": i["rho"],
    }
    optional = {"frac": "trend_frac", "patience": "phase_patience", "min_round": "phase_min_round"}
    settings |= {field: i[name] for name, field in optional.items() if name in i}
    curriculum = CVPOCurriculum(CVPOConfig(**settings))
    by_posterior = CVPOCurriculum(CVPOConfig(**{**settings, "wd_rho": "posterior"}))
    tracker = BetaTracker()
    rounds = []
    for counts in i["rounds"]:
        ids = [q for q in counts for _ in range(i["k"])]
        correct = [j < s for s in counts.values() for j in range(i["k"])]
        weights = curriculum.observe(ids, correct)
        posterior_weights = by_posterior.observe(ids, correct)
        updates = tracker.observe({q: (s, i["k"]) for q, s in counts.items()})
        assert curriculum.last_test is not None
        rounds.append(
            {
                "mean": {q: curriculum.tracker.records[q].mean for q in counts},
                "delta": {q: u.delta for q, u in updates.items()},
                "test": _test_fields(curriculum.last_test),
                "phase": curriculum.phase,
                "w_d": weights,
                "w_d_posterior": posterior_weights,
            }
        )
    return {"rounds": rounds}


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
    base, returns = value_advantages(
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


def _clip_options(i: Inputs) -> dict[str, Any]:
    return {
        "eps_clip": i["eps_low"],
        "eps_clip_high": i["eps_high"],
        "dual_clip": i.get("dual_clip"),
        "log_ratio_clamp": i.get("log_ratio_clamp", 20.0),
    }


def run_ppo_policy_loss(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    log_probs = batch.tokens(i["logp"], grad=True)
    coefs, _ = coefficients(batch, i, i["mode"])
    old, advantages = batch.tokens(i["old_logp"]), batch.tokens(i["advantages"])
    loss, stats = policy_loss(log_probs, old, advantages, batch.mask, coefs, **_clip_options(i))
    grad = gradient(loss, log_probs)
    assert bool((grad[~batch.mask] == 0).all())
    metrics = stats.metrics()
    return {"loss": loss.item(), "grad": batch.ragged(grad), **metrics}


def run_ppo_policy_loss_micro(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    _, denominators = coefficients(batch, i, i["mode"])
    whole = [batch.tokens(i[name]) for name in ("logp", "old_logp", "advantages")]
    partial = []
    for sequences in i["micro"]:
        part, (log_probs, old, advantages) = batch.slice(sequences, *whole)
        coefs = token_coefficients(part.mask, part.cu_seqlens, i["mode"], denominators, dtype=dtype)
        loss, _ = policy_loss(log_probs, old, advantages, part.mask, coefs, **_clip_options(i))
        partial.append(loss.item())
    return {"partial": partial, "total": sum(partial)}


def run_aggregate(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    coefs, _ = coefficients(batch, i, i["mode"])
    loss = aggregate(batch.tokens(i["token_x"]), batch.mask, coefs)
    return {"loss": loss.item(), "coefs": batch.ragged(coefs)}


def run_value_loss(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    values = batch.tokens(i["v"], grad=True)
    coefs, _ = coefficients(batch, i, i["mode"])
    returns, old = batch.tokens(i["returns"]), batch.tokens(i["v_old"])
    loss, stats = value_loss(
        values, returns, old, batch.mask, coefs, value_clip=i["clip"], half=i["half"]
    )
    grad = gradient(loss, values)
    assert bool((grad[~batch.mask] == 0).all())
    return {
        "loss": loss.item(),
        "grad": batch.ragged(grad),
        "clip_frac": stats.metrics()["clip_frac"],
    }


def run_kl_estimate(i: Inputs, dtype: torch.dtype) -> Outputs:
    log_probs = torch.tensor(i["logp"], dtype=dtype, requires_grad=True)
    estimate = kl_estimate(
        log_probs,
        torch.tensor(i["ref_logp"], dtype=dtype),
        i["kind"],
        input_clamp=i.get("input_clamp"),
        output_clamp=i.get("output_clamp"),
    )
    return {"value": estimate.tolist(), "grad": gradient(estimate.sum(), log_probs).tolist()}


def run_kl_loss(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    log_probs = batch.tokens(i["logp"], grad=True)
    coefs, _ = coefficients(batch, i, i["mode"])
    ref = batch.tokens(i["ref_logp"])
    loss = kl_loss(log_probs, ref, batch.mask, coefs, estimator=i["kind"])
    return {"loss": loss.item(), "grad": batch.ragged(gradient(loss, log_probs))}


def run_entropy(i: Inputs, dtype: torch.dtype) -> Outputs:
    logits = torch.tensor([i["logits"]], dtype=dtype, requires_grad=True)
    entropy = entropy_from_logits(logits, temperature=i.get("temperature", 1.0))
    return {"entropy": entropy.item(), "grad": gradient(entropy.sum(), logits)[0].tolist()}


def run_logp_and_grad(i: Inputs, dtype: torch.dtype) -> Outputs:
    logits = torch.tensor([i["logits"]], dtype=dtype, requires_grad=True)
    tokens = torch.tensor([i["token"]])
    log_prob = log_probs_from_logits(logits, tokens, temperature=i["temperature"])
    return {"logp": log_prob.item(), "grad": gradient(log_prob.sum(), logits)[0].tolist()}


def run_positive_lm_loss(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    log_probs = batch.tokens(i["logp"], grad=True)
    _, denominators = coefficients(batch, i, "token-mean")
    correct = torch.tensor(i["correct"]).bool()
    loss = positive_lm_loss(
        log_probs,
        batch.mask,
        correct,
        batch.cu_seqlens,
        correct_tokens=denominators.correct_tokens,
    )
    return {"loss": loss.item(), "grad": batch.ragged(gradient(loss, log_probs))}


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


def run_explained_variance(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    values, returns = batch.tokens(i["values"]), batch.tokens(i["returns"])
    return {"ev": explained_variance(values, returns, batch.mask)}


def run_value_pretrain_done(i: Inputs, dtype: torch.dtype) -> Outputs:
    rows = i["rows"]
    return {"done": [value_pretrain_done(r["step"], r["mse"], r["ev"], **r["cfg"]) for r in rows]}


def run_overlong_filter(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    truncated = torch.tensor(i["truncated"]).bool()
    mask = overlong_filter(batch.mask, truncated, batch.cu_seqlens)
    return {"masks": batch.ragged(mask.int())}


def _train_config(i: Inputs) -> AlgorithmConfig:
    """The value-based presets in golden terms (algo names: vapo, cvpo*, vc_ppo, ppo, orz)."""
    algo = i["algo"]
    lam_policy = i.get("lam_policy", i.get("lam", 1.0 if algo == "orz" else 0.95))
    return AlgorithmConfig(
        gamma=i.get("gamma", 1.0),
        length_adaptive_alpha=i.get("alpha_len"),
        lam_policy=lam_policy,
        lam_critic=i.get("lam_critic", lam_policy),
        whiten_advantages={"ppo": "sample", "orz": "population"}.get(algo, "off"),  # type: ignore[arg-type]
        kl_coef=i["kl_coef"],
        value_clip=i["value_clip"],
        positive_lm_coef=i["mu"],
    )


def run_train_step(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch, config = Packed.of(i["masks"], dtype), _train_config(i)
    correct = torch.tensor(i["correct"]).bool()
    outcome = correct.to(dtype) if i["algo"] == "orz" else torch.tensor(i["outcome"], dtype=dtype)
    old, log_probs = batch.tokens(i["old_logp"]), batch.tokens(i["logp"], grad=True)
    penalty = None
    if config.kl_coef:
        ref = batch.tokens(i["ref_logp"])
        penalty = kl_penalty(
            old, ref, batch.mask, kl_coef=config.kl_coef, estimator=config.kl_estimator
        )
    values = batch.tokens(i["values"])
    advantages, returns = value_advantages(
        values, outcome, batch.mask, batch.cu_seqlens, config, kl_penalty=penalty
    )
    result: Outputs = {"returns": batch.ragged(returns)}
    lam = actor_lambda(valid_lengths(batch.mask, batch.cu_seqlens), config)
    if isinstance(lam, Tensor):
        result["lam_policy"] = lam.tolist()
    if i["algo"].startswith("cvpo"):
        w_s, w_d, parts = cvpo_weights(batch, i)
        advantages = apply_weights(advantages, w_s, w_d, batch.cu_seqlens)
        result |= parts
    coefs, denominators = coefficients(batch, i, i["agg"])
    policy, _ = policy_loss(log_probs, old, advantages, batch.mask, coefs, **_clip_options(i))
    nll = positive_lm_loss(
        log_probs,
        batch.mask,
        correct,
        batch.cu_seqlens,
        correct_tokens=denominators.correct_tokens,
    )
    actor_loss = policy + config.positive_lm_coef * nll
    new_values = batch.tokens(i["new_values"], grad=True)
    token_mean, _ = coefficients(batch, i, "token-mean")
    critic_loss, _ = value_loss(
        new_values, returns, values, batch.mask, token_mean, value_clip=config.value_clip
    )
    return result | {
        "advantages": batch.ragged(advantages),
        "actor_loss": actor_loss.item(),
        "actor_grad": batch.ragged(gradient(actor_loss, log_probs)),
        "actor_parts": {"pg": policy.item(), "nll": nll.item()},
        "value_loss": critic_loss.item(),
        "value_grad": batch.ragged(gradient(critic_loss, new_values)),
    }


HANDLERS: dict[str, Handler] = {
    "gae": run_gae,
    "length_adaptive_lambda": run_length_adaptive_lambda,
    "vapo_advantages": run_vapo_advantages,
    "decoupled_gae": run_decoupled_gae,
    "orz_advantages": run_orz_advantages,
    "kl_in_reward": run_kl_in_reward,
    "value_std": run_value_std,
    "group_means": run_group_means,
    "w_s_batch": run_w_s_batch,
    "w_s": run_w_s,
    "w_d": run_w_d,
    "w_d_peak": run_w_d_peak,
    "beta_tracker": run_beta_tracker,
    "stagnation": run_stagnation,
    "phase_switch": run_phase_switch,
    "curriculum_run": run_curriculum,
    "cvpo_advantages": run_cvpo_advantages,
    "ppo_policy_loss": run_ppo_policy_loss,
    "ppo_policy_loss_micro": run_ppo_policy_loss_micro,
    "aggregate": run_aggregate,
    "value_loss": run_value_loss,
    "kl_estimate": run_kl_estimate,
    "kl_loss": run_kl_loss,
    "entropy_from_logits": run_entropy,
    "logp_and_grad": run_logp_and_grad,
    "positive_lm_loss": run_positive_lm_loss,
    "whiten": run_whiten,
    "explained_variance": run_explained_variance,
    "value_pretrain_done": run_value_pretrain_done,
    "overlong_filter": run_overlong_filter,
    "train_step:vapo": run_train_step,
    "train_step:cvpo": run_train_step,
    "train_step:vc_ppo": run_train_step,
    "train_step:ppo": run_train_step,
    "train_step:orz": run_train_step,
}
