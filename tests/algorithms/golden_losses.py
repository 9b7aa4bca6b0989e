# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Golden losses with their gradients, and the statistics beside them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from megacurl.algorithms.aggregation import (
    Denominators,
    aggregate,
    global_denominators,
    prompt_token_counts,
    token_coefficients,
)
from megacurl.algorithms.kl import kl_estimate, kl_loss
from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits
from megacurl.algorithms.metrics import explained_variance, value_pretrain_done
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.positive_lm import positive_lm_loss
from megacurl.algorithms.value_loss import value_loss
from tests.algorithms.golden_advantages import group_index
from tests.algorithms.golden_support import Inputs, Outputs, Packed


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
        mode,
        denominators,
        prompt_tokens=prompt_token_counts(lengths, group) if group is not None else None,
        dtype=batch.dtype,
    )
    return coefs, denominators


def gradient(loss: Tensor, leaf: Tensor) -> Tensor:
    return torch.autograd.grad(loss, leaf)[0]


def clip_options(i: Inputs) -> dict[str, Any]:
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
    loss, stats = policy_loss(log_probs, old, advantages, batch.mask, coefs, **clip_options(i))
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
        loss, _ = policy_loss(log_probs, old, advantages, part.mask, coefs, **clip_options(i))
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


def run_explained_variance(i: Inputs, dtype: torch.dtype) -> Outputs:
    batch = Packed.of(i["masks"], dtype)
    values, returns = batch.tokens(i["values"]), batch.tokens(i["returns"])
    return {"ev": explained_variance(values, returns, batch.mask)}


def run_value_pretrain_done(i: Inputs, dtype: torch.dtype) -> Outputs:
    rows = i["rows"]
    return {"done": [value_pretrain_done(r["step"], r["mse"], r["ev"], **r["cfg"]) for r in rows]}
