# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantage estimators: the registry, and one added as the docs say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from megacurl.algorithms.estimators import registry
from megacurl.algorithms.estimators.registry import (
    estimator_names,
    get_estimator,
    register_estimator,
)
from megacurl.algorithms.gae import gae
from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig
from tests.algorithms.batches import Batch, make_batch, noise

REWARDS = torch.tensor([1.0, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
GROUP = torch.tensor([5, 5, 5, 2, 2, 2, 2])
CONFIG = AlgorithmConfig()


def responses(batch: Batch, own: list[int], **more: Tensor) -> Responses:
    """What a rank sees that has only the responses ``own`` of the rollout."""
    return Responses(batch.mask, batch.cu_seqlens, torch.tensor(own), REWARDS, GROUP, **more)


def test_names() -> None:
    assert estimator_names() == ["gae", "grpo", "rloo"]
    with pytest.raises(ValueError, match=r"unknown estimator 'grop' \(did you mean 'grpo'"):
        get_estimator("grop")
    with pytest.raises(ValueError, match="'grpo' is registered twice"):
        register_estimator("grpo")(get_estimator("gae").estimate)


def test_dr_grpo_only_subtracts_the_mean() -> None:
    batch = make_batch()
    own = list(range(7))
    found = get_estimator("grpo").estimate(responses(batch, own), replace(CONFIG, grpo_std="none"))
    assert set(found[batch.mask].tolist()) <= {1 - 1 / 3, -1 - 1 / 3, 1.0, -1.0}


def test_gae_without_values_says_so() -> None:
    with pytest.raises(ValueError, match="GAE needs values"):
        get_estimator("gae").estimate(responses(make_batch(), list(range(7))), CONFIG)


def test_one_more_estimator_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """REINFORCE++ before its whitening: the reward to go, less the KL penalty, no baseline."""
    monkeypatch.setattr(registry._ESTIMATORS, "_entries", dict(registry._ESTIMATORS._entries))

    @register_estimator("reward_to_go", kl_in_reward=True)
    def reward_to_go(responses: Responses, config: AlgorithmConfig) -> Tensor:
        rewards = responses.token_rewards()
        layout = (rewards, responses.mask, responses.cu_seqlens)
        return gae(torch.zeros_like(rewards), *layout, gamma=config.gamma, lam=1.0)[0]

    batch = make_batch()
    penalty = batch.poisoned(noise(batch, 1).abs())
    own = list(range(7))
    estimate = get_estimator("reward_to_go").estimate
    found = estimate(responses(batch, own, kl_penalty=penalty), CONFIG)
    for r, a, p, m in zip(
        REWARDS,
        found.split(batch.lengths),
        penalty.split(batch.lengths),
        batch.mask.split(batch.lengths),
        strict=True,
    ):
        if m.any():
            assert float(a[m][0]) == pytest.approx(float(r - p[m].sum()))
            assert float(a[m][-1]) == pytest.approx(float(r - p[m][-1]))
