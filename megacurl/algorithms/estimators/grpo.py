# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""GRPO and Dr. GRPO: a response against the mean of its group, on every token."""

from __future__ import annotations

from torch import Tensor

from megacurl.algorithms.estimators.registry import register_estimator
from megacurl.algorithms.group_advantages import grpo_advantages
from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig


@register_estimator("grpo", needs_groups=True)
def grpo(responses: Responses, config: AlgorithmConfig) -> Tensor:
    """(R_i - mean)/(std + eps) of the group; ``grpo_std none`` is Dr. GRPO."""
    advantages = grpo_advantages(
        responses.rewards, responses.group, std=config.grpo_std, eps=config.grpo_eps
    )
    return responses.on_every_token(advantages)
