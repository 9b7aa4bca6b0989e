# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Explained variance of degenerate batches, and the end of the critic's warm-up."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.metrics import (
    ExplainedVariance,
    critic_warmup_done,
    explained_variance,
)
from megacurl.config.schema import AlgorithmConfig


def test_constant_returns_and_no_tokens_explain_nothing() -> None:
    values, mask = torch.tensor([0.1, 0.9]), torch.ones(2, dtype=torch.bool)
    assert explained_variance(values, torch.ones(2), mask) == 0.0
    assert ExplainedVariance().value == ExplainedVariance().mse == 0.0


def test_zero_values_against_plus_minus_one_have_mse_one() -> None:
    returns = torch.tensor([1.0, -1.0, -1.0])
    found = ExplainedVariance.of(torch.zeros(3), returns, torch.ones(3, dtype=torch.bool))
    assert found.mse == pytest.approx(1.0, rel=1e-12)


def test_warmup_follows_the_settings() -> None:
    by_steps = AlgorithmConfig(critic_warmup_iters=21)
    assert not critic_warmup_done(20, mse=0.1, ev=0.9, config=by_steps)
    assert critic_warmup_done(21, mse=9.0, ev=-9.0, config=by_steps)
    early = AlgorithmConfig(
        critic_warmup_iters=21, critic_warmup_stop="criterion", critic_warmup_min_iters=5
    )
    assert not critic_warmup_done(4, mse=0.1, ev=0.9, config=early)
    assert critic_warmup_done(5, mse=0.1, ev=0.9, config=early)
    assert not critic_warmup_done(5, mse=1.0, ev=0.9, config=early)
    assert not critic_warmup_done(5, mse=0.1, ev=0.0, config=early)
    assert critic_warmup_done(21, mse=1.0, ev=0.0, config=early)
