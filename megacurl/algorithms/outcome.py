# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The reward of a response, from its verdict and its length."""

from __future__ import annotations

from megacurl.algorithms.overlong import overlong_penalty
from megacurl.config.schema import Config


def outcome_reward(config: Config, *, score: float, truncated: bool, length: int) -> float:
    """Return what the advantage estimator sees for a response.

    Linear in the score between the rewards of a wrong and of a correct response.

    Args:
        config: rewards, overlong penalty, length limit.
        score: the verifier's, in [0, 1]; 1 for correct and 0 for wrong where it gives no grades.
        truncated: whether the length limit cut the response.
        length: its tokens.
    """
    algorithm, limit = config.algorithm, config.rollout.rollout_max_response_len
    # In this form exactly the one at 0 and the other at 1, whatever the two are.
    reward = (1 - score) * algorithm.reward_wrong + score * algorithm.reward_correct
    if truncated and algorithm.reward_truncated is not None:
        reward = algorithm.reward_truncated
    if algorithm.overlong_penalty:
        buffer = algorithm.overlong_buffer or max(limit // 5, 1)
        reward += overlong_penalty(
            length, max_length=limit, buffer=buffer, factor=algorithm.overlong_penalty
        )
    return reward
