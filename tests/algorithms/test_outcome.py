# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The reward of a response under the settings that shape it."""

from __future__ import annotations

from typing import Any

import pytest

from megacurl.algorithms.outcome import outcome_reward
from megacurl.config.schema import AlgorithmConfig, Config, RolloutConfig


def reward(score: float, truncated: bool, length: int, **algorithm: Any) -> float:
    config = Config(
        algorithm=AlgorithmConfig(**algorithm),
        rollout=RolloutConfig(rollout_max_response_len=20),
    )
    return outcome_reward(config, score=score, truncated=truncated, length=length)


def test_verdict_and_truncation() -> None:
    assert reward(True, False, 20) == 1.0
    assert reward(False, False, 1) == -1.0
    assert reward(True, True, 20) == 1.0
    orz = {"reward_wrong": 0.0, "reward_truncated": 0.0}
    assert reward(True, True, 20, **orz) == 0.0
    assert reward(True, False, 19, **orz) == 1.0


def test_a_score_lies_between_the_two_rewards() -> None:
    scores = (0.0, 0.25, 0.5, 1.0)
    assert [reward(score, False, 1) for score in scores] == [-1.0, -0.5, 0.0, 1.0]
    odd = {"reward_wrong": -0.1, "reward_correct": 0.7}
    assert [reward(score, False, 1, **odd) for score in (0.0, 1.0)] == [-0.1, 0.7]  # to the bit
    assert reward(0.5, True, 20, reward_truncated=-1.0) == -1.0
    assert reward(0.5, True, 20, overlong_penalty=1.0) == -1.0


def test_the_overlong_penalty_comes_on_top() -> None:
    lengths = (16, 17, 18, 20)
    found = [reward(True, n == 20, n, overlong_penalty=1.0) for n in lengths]
    assert found == pytest.approx([1.0, 0.75, 0.5, 0.0])  # a fifth of 20 tokens
    wide = [reward(False, False, n, overlong_penalty=0.5, overlong_buffer=20) for n in (0, 10)]
    assert wide == pytest.approx([-1.0, -1.25])
