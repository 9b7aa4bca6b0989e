# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Rewards of drawn rollouts: the outcome and its length penalty, truncation, and stray rewards."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from megacurl.algorithms.gae import gae
from megacurl.algorithms.outcome import outcome_reward
from megacurl.algorithms.overlong import overlong_penalty
from megacurl.algorithms.truncation import overlong_filter, truncation_bootstrap
from megacurl.config.schema import AlgorithmConfig, Config, RolloutConfig
from megacurl.curriculum.group_variance import group_variance
from tests.algorithms import loops
from tests.algorithms.properties import check_per_response, check_per_token
from tests.algorithms.strategies import Drawn, rollouts

LIMIT = 20


@given(
    lengths=st.lists(st.integers(0, 2 * LIMIT), min_size=2),
    buffer=st.integers(1, LIMIT),
    factor=st.floats(0, 10),
)
def test_overlong_penalty(lengths: list[int], buffer: int, factor: float) -> None:
    """Zero while there is room, the whole factor at the limit, never rising in between."""
    found = [
        overlong_penalty(n, max_length=LIMIT, buffer=buffer, factor=factor) for n in sorted(lengths)
    ]
    assert found == sorted(found, reverse=True)
    for length, penalty in zip(sorted(lengths), found, strict=True):
        assert -factor <= penalty <= 0
        if length <= LIMIT - buffer:
            assert penalty == 0
        if length >= LIMIT:
            assert penalty == -factor


@given(
    score=st.sampled_from((0.0, 1.0)) | st.floats(0, 1),
    truncated=st.booleans(),
    length=st.integers(0, LIMIT),
    of_truncated=st.none() | st.floats(-2, 2),
    factor=st.sampled_from((0.0, 1.0)),
    buffer=st.none() | st.integers(1, LIMIT),
)
def test_outcome_reward(
    score: float,
    truncated: bool,
    length: int,
    of_truncated: float | None,
    factor: float,
    buffer: int | None,
) -> None:
    algorithm = replace(
        AlgorithmConfig(),
        reward_truncated=of_truncated,
        overlong_penalty=factor,
        overlong_buffer=buffer,
    )
    config = Config(algorithm=algorithm, rollout=RolloutConfig(rollout_max_response_len=LIMIT))
    found = outcome_reward(config, score=score, truncated=truncated, length=length)
    expected = of_truncated if truncated and of_truncated is not None else 2 * score - 1
    room = buffer or LIMIT // 5
    expected -= factor * min(max(length - (LIMIT - room), 0) / room, 1)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(rollout=rollouts(tokens=1, numbers=1))
def test_truncation(dtype: torch.dtype, rollout: Drawn) -> None:
    """The filter takes truncated responses out whole; the bootstrap is theirs alone."""

    def kept(part: Drawn, _: list[int]) -> Tensor:
        return overlong_filter(part.mask, part.truncated, part.cu_seqlens).to(dtype)

    def bootstrap(part: Drawn, _: list[int]) -> Tensor:
        ends = torch.where(part.truncated, part.numbers[0], math.nan)
        return truncation_bootstrap(part.truncated, ends)

    cut = rollout.truncated.tolist()
    rows = [
        [float(not gone)] * int(n) for gone, n in zip(cut, rollout.lengths.tolist(), strict=True)
    ]
    check_per_token(rollout.to(dtype), kept, rollout.spread(rows))
    ends = [x if gone else 0.0 for gone, x in zip(cut, rollout.numbers[0].tolist(), strict=True)]
    check_per_response(rollout, bootstrap, ends, dtype)


@pytest.mark.parametrize("mode", ["drop", "carry"])
@given(rollout=rollouts(tokens=1))
def test_stray_rewards(dtype: torch.dtype, mode: Any, rollout: Drawn) -> None:
    """Those on masked tokens vanish, or go to the sampled token before; what is not finite is no
    reward. By the returns of lambda 1, which are sums of rewards."""
    rewards = rollout.tokens[0].clone()
    moved = torch.where(rollout.mask, rewards, 0.0)
    for own in ([i] for i in range(rollout.size)):
        before = -1
        for t in rollout.positions(own).tolist():
            before = t if rollout.mask[t] else before
            if before < 0:
                rewards[t] = math.inf
            elif t != before and mode == "carry":
                moved[before] += rewards[t]
    rows = [[math.fsum(row[t:]) for t in range(len(row))] for row in rollout.valid(moved)]

    def run(part: Drawn, own: list[int]) -> Tensor:
        given_rewards = rewards[rollout.positions(own)].to(dtype)
        return gae(
            torch.zeros_like(given_rewards),
            given_rewards,
            part.mask,
            part.cu_seqlens,
            gamma=1.0,
            lam=1.0,
            masked_reward=mode,
        )[1]

    check_per_token(rollout.to(dtype), run, rollout.spread(rows), scale=100)


@given(verdicts=st.lists(st.booleans(), min_size=1, max_size=20), low=st.floats(-1, 0))
def test_group_variance_of_verdicts(verdicts: list[bool], low: float) -> None:
    """VCRL's measure: 0 for one outcome, 1 at half right, the same for two rewards of any size."""
    right, count = sum(verdicts), len(verdicts)
    found = group_variance([1.0 if v else low for v in verdicts], low=low, high=1.0)
    largest = max((count // 2) * (count - count // 2), 1)
    assert found == right * (count - right) / largest


@given(shares=st.lists(st.floats(0, 1), min_size=1, max_size=12), data=st.data())
def test_group_variance_of_scores(shares: list[float], data: st.DataObject) -> None:
    found = group_variance(shares, low=0.0, high=1.0)
    assert -1e-12 <= found <= 1 + 1e-12
    again = group_variance(data.draw(st.permutations(shares)), low=0.0, high=1.0)
    assert again == pytest.approx(found, rel=1e-9, abs=1e-12)
    largest = max((len(shares) // 2) * (len(shares) - len(shares) // 2), 1)
    expected = loops.variance(shares, 0) * len(shares) ** 2 / largest
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
