# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Golden quantities of the algorithms without a critic."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from megacurl.algorithms.group_advantages import grpo_advantages, rloo_advantages
from megacurl.algorithms.importance import correct_staleness, importance_weights
from megacurl.algorithms.kl import kl_loss
from megacurl.algorithms.overlong import overlong_penalty
from megacurl.algorithms.packed import expand
from megacurl.algorithms.policy_loss import policy_loss, sequence_log_ratio
from megacurl.curriculum.group_variance import group_variance, threshold_at
from megacurl.curriculum.replay_bank import ReplayBank
from megacurl.curriculum.sampling.dynamic import DynamicSampling
from megacurl.curriculum.sampling.rule import GroupOutcome, SamplingRule
from megacurl.curriculum.sampling.vcrl import VCRLSampling
from tests.algorithms.golden_advantages import group_index
from tests.algorithms.golden_losses import clip_options, coefficients, gradient
from tests.algorithms.golden_support import Inputs, Outputs, Packed


def _group_advantages(i: Inputs, rewards: list[float], dtype: torch.dtype) -> torch.Tensor:
    assert i.get("singleton", "zero") == "zero"
    std = {0: "population", 1: "sample"}[i["ddof"]] if i.get("norm_std", "ddof" in i) else "none"
    return grpo_advantages(
        torch.tensor(rewards, dtype=dtype),
        group_index(i["groups"]),
        std=std,  # type: ignore[arg-type]
        eps=i.get("eps", 1e-6),
    )


def run_grpo_advantages(i: Inputs, dtype: torch.dtype) -> Outputs:
    return {"advantages": _group_advantages(i, i["rewards"], dtype).tolist()}


def run_rloo_advantages(i: Inputs, dtype: torch.dtype) -> Outputs:
    rewards = torch.tensor(i["rewards"], dtype=dtype)
    return {"advantages": rloo_advantages(rewards, group_index(i["groups"])).tolist()}


def run_group_train_step(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    per_response = _group_advantages(i, i["outcome"], dtype)
    advantages = expand(per_response.to(dtype), batch.cu_seqlens, batch.mask.numel())
    log_probs = batch.tokens(i["logp"], grad=True)
    old, reference = batch.tokens(i["old_logp"]), batch.tokens(i["ref_logp"])
    coefs, _ = coefficients(batch, i, i["agg"])
    policy, _ = policy_loss(log_probs, old, advantages, batch.mask, coefs, **clip_options(i))
    kl = kl_loss(log_probs, reference, batch.mask, coefs, estimator="k3")
    loss = policy + i["kl_coef"] * kl
    return {
        "seq_advantages": per_response.tolist(),
        "advantages": batch.ragged(torch.where(batch.mask, advantages, 0.0)),
        "actor_loss": loss.item(),
        "actor_grad": batch.ragged(gradient(loss, log_probs)),
        "actor_parts": {"pg": policy.item(), "kl": kl.item()},
    }


def run_gspo_loss(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    log_probs = batch.tokens(i["logp"], grad=True)
    old = batch.tokens(i["old_logp"])
    given = i["advantages"]
    if isinstance(given[0], list):
        advantages = batch.tokens(given)
    else:
        advantages = expand(torch.tensor(given, dtype=dtype), batch.cu_seqlens, batch.mask.numel())
    coefs, _ = coefficients(batch, i, "seq-mean-token-mean")
    loss, stats = policy_loss(
        log_probs,
        old,
        advantages,
        batch.mask,
        coefs,
        sequences=batch.cu_seqlens,
        **clip_options(i),
    )
    log_ratio = torch.where(batch.mask, log_probs - old, 0.0)
    at_tokens = batch.ragged(sequence_log_ratio(log_ratio, batch.mask, batch.cu_seqlens).exp())
    ratios = [
        next((r for r, m in zip(row, mask, strict=True) if m), 1.0)
        for row, mask in zip(at_tokens, i["masks"], strict=True)
    ]
    grad = gradient(loss, log_probs)
    assert bool((grad[~batch.mask] == 0).all())
    return {
        "loss": loss.item(),
        "grad": batch.ragged(grad),
        "seq_ratio": ratios,
        "clip_frac": stats.metrics()["clip_frac"],
    }


def run_is_weights(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    options = {name: i[name] for name in ("kind", "level", "low", "high")}
    old, behaviour = batch.tokens(i["prox_logp"]), batch.tokens(i["behav_logp"])
    return {
        "w": batch.ragged(
            importance_weights(old, behaviour, batch.mask, batch.cu_seqlens, **options)
        )
    }


def run_async_policy_loss(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    log_probs = batch.tokens(i["logp"], grad=True)
    start, weights = correct_staleness(
        batch.tokens(i["prox_logp"]),
        batch.tokens(i["behav_logp"]),
        batch.mask,
        batch.cu_seqlens,
        correction=i["mode_old"],
        high=i["is_high"],
    )
    given = i["advantages"]
    advantages = (
        batch.tokens(given)
        if isinstance(given[0], list)
        else expand(torch.tensor(given, dtype=dtype), batch.cu_seqlens, batch.mask.numel())
    )
    coefs, _ = coefficients(batch, i, i["mode"])
    loss, stats = policy_loss(
        log_probs,
        start,
        advantages,
        batch.mask,
        coefs,
        token_weights=weights,
        **clip_options(i),
    )
    return {
        "loss": loss.item(),
        "grad": batch.ragged(gradient(loss, log_probs)),
        "clip_frac": stats.metrics()["clip_frac"],
    }


def run_overlong_penalty(i: Inputs, dtype: torch.dtype) -> Outputs:
    limits = {"max_length": i["max_len"], "buffer": i["cache_len"], "factor": i["factor"]}
    return {"penalty": [overlong_penalty(length, **limits) for length in i["lengths"]]}


def outcomes(groups: list[str], correct: list[Any]) -> list[GroupOutcome]:
    """Group a flat batch by question, in order of first appearance."""
    return [
        _judged(q, [bool(c) for g, c in zip(groups, correct, strict=True) if g == q])
        for q in dict.fromkeys(groups)
    ]


def _judged(question: str, correct: list[bool]) -> GroupOutcome:
    return GroupOutcome(question, tuple(correct), tuple(map(float, correct)))


def run_dynamic_sampling_keep(i: Inputs, dtype: torch.dtype) -> Outputs:
    return {"keep": [o.question for o in outcomes(i["groups"], i["correct"]) if o.mixed]}


def run_dynamic_sampling_fill(i: Inputs, dtype: torch.dtype) -> Outputs:
    rule = DynamicSampling(i["n_prompts"], max_rounds=len(i["batches"]))
    ask, rounds = rule.begin(0), 0
    while ask:
        rule.observe(outcomes(**i["batches"][rounds]))
        rounds += 1
        ask = rule.more()
    assert rule.metrics()["rounds"] == rounds
    return {
        "chosen": rule.finish(),
        "rounds": rounds,
        "complete": rule.metrics()["shortfall"] == 0,
    }


def run_vcrl_p_binary(i: Inputs, dtype: torch.dtype) -> Outputs:
    groups = ([1.0] * k + [0.0] * (i["G"] - k) for k in i["k"])
    return {"p": [group_variance(group, low=0, high=1) for group in groups]}


def run_vcrl_p(i: Inputs, dtype: torch.dtype) -> Outputs:
    return {"p": group_variance(i["rewards"], low=i["r_min"], high=i["r_max"])}


def run_vcrl_keep(i: Inputs, dtype: torch.dtype) -> Outputs:
    kept: dict[str, dict[str, list[int]]] = {}
    for kappa in i["kappas"]:
        of_kappa = kept.setdefault(str(kappa), {})
        for attempts in i["Gs"]:
            rule = VCRLSampling(attempts + 1, ReplayBank(), kappa_early=kappa)
            rule.begin(0)
            rule.observe([_rolled(str(k), k, attempts) for k in range(attempts + 1)])
            of_kappa[str(attempts)] = [int(q) for q in rule.finish()]
    return {"kept": kept}


def run_vcrl_kappa(i: Inputs, dtype: torch.dtype) -> Outputs:
    schedule = {"early": i["k0"], "late": i["k1"], "switch_step": i["switch"]}
    return {"kappa": [threshold_at(step, **schedule) for step in i["steps"]]}


def run_vcrl(i: Inputs, dtype: torch.dtype) -> Outputs:
    settings = {"momentum": i["alpha"], "max_replays": i["max_replays"], "beta": i["beta"]}
    rule: SamplingRule = VCRLSampling(i["n_batch"], ReplayBank(**settings))
    rows = []
    for script in i["script"]:
        rule = _resumed(rule, VCRLSampling(i["n_batch"], ReplayBank(**settings)))
        assert isinstance(rule, VCRLSampling)
        assert rule.begin(script["step"]).fresh == len(script["fresh"])
        rule.observe([_rolled(q, k, i["G"]) for q, k in script["fresh"]])
        replayed = rule.more().again
        if replayed:
            rule.observe([_rolled(q, script["replay"][q], i["G"]) for q in replayed])
        assert not rule.more()
        batch = rule.finish()
        rows.append(
            {
                "kappa": rule.kappa,
                "kept": batch[: len(batch) - len(replayed)],
                "replayed": list(replayed),
                "batch": batch,
                "bank": {
                    q: {"prio": e["priority"], "replays": e["replays"]}
                    for q, e in ((q, asdict(e)) for q, e in rule.bank.entries.items())
                },
            }
        )
    return {"rows": rows}


def _rolled(question: str, successes: int, attempts: int) -> GroupOutcome:
    return _judged(question, [j < successes for j in range(attempts)])


def _resumed(old: SamplingRule, new: SamplingRule) -> SamplingRule:
    """Every step of the golden run is taken by a rule that was just restored."""
    new.load_state_dict(old.state_dict())
    return new
