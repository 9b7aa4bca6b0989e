# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Golden updates: values and outcomes to losses and gradients, composed as in training."""

from __future__ import annotations

import torch
from torch import Tensor

from megacurl.algorithms.advantages import actor_lambda, apply_weights
from megacurl.algorithms.kl import kl_penalty
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.positive_lm import positive_lm_loss
from megacurl.algorithms.value_loss import value_loss
from megacurl.config.schema import AlgorithmConfig
from tests.algorithms.batches import advantages_and_targets
from tests.algorithms.golden_advantages import cvpo_weights
from tests.algorithms.golden_losses import clip_options, coefficients, gradient
from tests.algorithms.golden_support import Inputs, Outputs, Packed


def _train_config(i: Inputs) -> AlgorithmConfig:
    """The value-based presets in golden terms (algo names: vapo, cvpo*, vc_ppo, ppo, orz)."""
    algo = i["algo"]
    lam_policy = i.get("lam_policy", i.get("lam", 1.0 if algo == "orz" else 0.95))
    return AlgorithmConfig(
        gamma=i.get("gamma", 1.0),
        length_adaptive_alpha=i.get("alpha_len"),
        lam_policy=lam_policy,
        lam_critic=i.get("lam_critic", lam_policy),
        whiten_advantages={"ppo": "sample", "orz": "population"}.get(algo, "off"),
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
    advantages, returns = advantages_and_targets(
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
    policy, _ = policy_loss(log_probs, old, advantages, batch.mask, coefs, **clip_options(i))
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
