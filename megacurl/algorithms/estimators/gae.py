# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Generalised advantage estimation with the actor's lambda: PPO, ORZ, VC-PPO, VAPO, CVPO."""

from __future__ import annotations

from torch import Tensor

from megacurl.algorithms.advantages import actor_lambda, responses_gae
from megacurl.algorithms.estimators.registry import register_estimator
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig


@register_estimator("gae", needs_values=True, kl_in_reward=True)
def gae(responses: Responses, config: AlgorithmConfig) -> Tensor:
    """GAE with ``lam_policy``, or VAPO's lambda by length."""
    lengths = valid_lengths(responses.mask, responses.cu_seqlens)
    advantages, _ = responses_gae(responses, config, actor_lambda(lengths, config))
    return advantages
