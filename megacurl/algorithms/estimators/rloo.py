# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""RLOO: a response against the mean of the others of its group, on every token."""

from __future__ import annotations

from torch import Tensor

from megacurl.algorithms.estimators.registry import register_estimator
from megacurl.algorithms.group_advantages import rloo_advantages
from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig


@register_estimator("rloo", needs_groups=True)
def rloo(responses: Responses, config: AlgorithmConfig) -> Tensor:
    """R_i minus the mean of the other responses to its question."""
    return responses.on_every_token(rloo_advantages(responses.rewards, responses.group))
