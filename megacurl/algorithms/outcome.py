# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The reward of a response, from its verdict and its length."""

from __future__ import annotations

from megacurl.algorithms.overlong import overlong_penalty
from megacurl.config.schema import Config


def outcome_reward(config: Config, *, correct: bool, truncated: bool, length: int) -> float:
    """Return what the advantage estimator sees for a response.

    Args:
        config: rewards, overlong penalty, length limit.
        correct: the verifier's word.
        truncated: whether the length limit cut the response.
        length: its tokens.
    """
    algorithm, limit = config.algorithm, config.rollout.rollout_max_response_len
    reward = algorithm.reward_correct if correct else algorithm.reward_wrong
    if truncated and algorithm.reward_truncated is not None:
        reward = algorithm.reward_truncated
    if algorithm.overlong_penalty:
        buffer = algorithm.overlong_buffer or max(limit // 5, 1)
        reward += overlong_penalty(
            length, max_length=limit, buffer=buffer, factor=algorithm.overlong_penalty
        )
    return reward
