# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantages and critic targets of drawn rollouts: estimators, whitening, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from megacurl.algorithms.advantages import actor_lambda, critic_targets, whiten_advantages
from megacurl.algorithms.estimators.registry import estimator_names, get_estimator
from megacurl.algorithms.gae import gae, place_outcome
from megacurl.algorithms.group_advantages import grpo_advantages, rloo_advantages
from megacurl.algorithms.metrics import ExplainedVariance
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig
from tests.algorithms import loops
from tests.algorithms.properties import check_per_response, check_per_token
from tests.algorithms.strategies import Drawn, rollouts

UNIT = st.sampled_from((0.0, 0.1, 0.5, 0.97, 1.0))


@given(
    rollout=rollouts(tokens=2, numbers=2), gamma=UNIT, lam=st.sampled_from((None, 0.0, 0.95, 1.0))
)
def test_gae(dtype: torch.dtype, rollout: Drawn, gamma: float, lam: float | None) -> None:
    drawn = rollout.to(dtype)

    def lambdas(part: Drawn) -> Tensor:
        return part.numbers[0].abs() / 4  # at most 1

    def run(part: Drawn, _: list[int], column: int = 0) -> Tensor:
        values, rewards = part.tokens
        return gae(
            values,
            rewards,
            part.mask,
            part.cu_seqlens,
            gamma=gamma,
            lam=lambdas(part) if lam is None else lam,
            bootstrap=part.numbers[1],
            masked_reward="drop",  # 1e30 is garbage here, and a stray reward elsewhere
        )[column]

    values, rewards = (rollout.valid(x) for x in rollout.tokens)
    rows = [
        loops.gae(v, r, gamma=gamma, lam=one, end=end)
        for v, r, one, end in zip(
            values,
            rewards,
            lambdas(rollout).tolist() if lam is None else [lam] * rollout.size,
            rollout.numbers[1].tolist(),
            strict=True,
        )
    ]
    advantages = rollout.spread(rows)
    check_per_token(drawn, run, advantages, scale=100)
    returns = advantages + torch.where(rollout.mask, rollout.tokens[0], 0.0)
    check_per_token(drawn, lambda part, own: run(part, own, 1), returns, scale=100)


@given(rollout=rollouts(tokens=1, numbers=1))
def test_place_outcome(dtype: torch.dtype, rollout: Drawn) -> None:
    rows = [
        loops.last_only(row, reward)
        for row, reward in zip(
            rollout.valid(rollout.tokens[0]), rollout.numbers[0].tolist(), strict=True
        )
    ]

    def run(part: Drawn, _: list[int]) -> Tensor:
        return place_outcome(part.numbers[0], part.mask, part.cu_seqlens)

    check_per_token(rollout.to(dtype), run, rollout.spread(rows))


ESTIMATORS: dict[str, dict[str, Any]] = {
    "gae": {"length_adaptive_alpha": 0.17},
    "gae plain": {"length_adaptive_alpha": None, "lam_policy": 0.95, "gamma": 0.97},
    "gae bootstrap": {"truncation": "bootstrap"},
    "grpo": {},
    "grpo population": {"grpo_std": "population"},
    "grpo none": {"grpo_std": "none"},
    "rloo": {},
}


def responses_of(whole: Drawn, part: Drawn, own: list[int]) -> Responses:
    """What a rank sees that owns some of the responses; tokens are values and a KL penalty."""
    values, penalty = part.tokens
    return Responses(
        mask=part.mask,
        cu_seqlens=part.cu_seqlens,
        index=torch.tensor(own, dtype=torch.long),
        rewards=whole.numbers[0],
        group=whole.group,
        values=values,
        truncated=part.truncated,
        end_values=part.numbers[1],
        kl_penalty=penalty,
    )


def expected_advantages(rollout: Drawn, kind: str, config: AlgorithmConfig) -> Tensor:
    """By the loops; [T]."""
    rewards, group = rollout.numbers[0].tolist(), rollout.group.tolist()
    values, penalty = (rollout.valid(x) for x in rollout.tokens)
    if kind.startswith("gae"):
        rows = []
        for i, row in enumerate(values):
            token_rewards = loops.last_only(row, rewards[i])
            lam = config.lam_policy
            if config.length_adaptive_alpha is not None:
                lam = loops.adaptive_lambda(len(row), config.length_adaptive_alpha)
            ends = config.truncation == "bootstrap" and bool(rollout.truncated[i])
            rows.append(
                loops.gae(
                    row,
                    [r - p for r, p in zip(token_rewards, penalty[i], strict=True)],
                    gamma=config.gamma,
                    lam=lam,
                    end=float(rollout.numbers[1][i]) if ends else 0.0,
                )
            )
        return rollout.spread(rows)
    if kind == "rloo":
        per_response = loops.rloo(rewards, group)
    else:
        per_response = loops.grpo(rewards, group, std=config.grpo_std, eps=config.grpo_eps)
    return rollout.spread([[a] * len(row) for a, row in zip(per_response, values, strict=True)])


@pytest.mark.parametrize("kind", ESTIMATORS)
@given(rollout=rollouts(tokens=2, numbers=2))
def test_estimator(dtype: torch.dtype, kind: str, rollout: Drawn) -> None:
    config, drawn = replace(AlgorithmConfig(), **ESTIMATORS[kind]), rollout.to(dtype)
    estimate = get_estimator(kind.split()[0]).estimate

    def run(part: Drawn, own: list[int]) -> Tensor:
        return estimate(responses_of(drawn, part, own), config)

    check_per_token(drawn, run, expected_advantages(rollout, kind, config), scale=100)


def test_every_estimator_is_drawn() -> None:
    assert {kind.split()[0] for kind in ESTIMATORS} == set(estimator_names())


GROUP_RULES: dict[str, tuple[Callable[..., Tensor], Callable[..., list[float]]]] = {
    "sample": (grpo_advantages, partial(loops.grpo, std="sample", eps=1e-6)),
    "population": (
        partial(grpo_advantages, std="population"),
        partial(loops.grpo, std="population", eps=1e-6),
    ),
    "none": (partial(grpo_advantages, std="none"), partial(loops.grpo, std="none", eps=1e-6)),
    "rloo": (rloo_advantages, loops.rloo),
}


@pytest.mark.parametrize("rule", GROUP_RULES)
@given(rollout=rollouts())
def test_group_advantages_of_verdicts(dtype: torch.dtype, rule: str, rollout: Drawn) -> None:
    """A group that is all right or all wrong, or a single response, has advantage exactly 0."""
    advantages, loop = GROUP_RULES[rule]

    def rewards(part: Drawn) -> Tensor:
        # Neither number is exact, nor is a mean of several of them.
        return torch.tensor([-0.7, 0.1], dtype=dtype)[part.correct.long()]

    def run(part: Drawn, _: list[int]) -> Tensor:
        return advantages(rewards(part), part.group)

    numbers, questions = rewards(rollout).double().tolist(), rollout.group.tolist()
    check_per_response(rollout, run, loop(numbers, questions), dtype, of_group=True)
    found = run(rollout, [])
    for question in rollout.group.unique():
        members = rollout.group == question
        if rollout.correct[members].unique().numel() == 1:
            assert found[members].tolist() == [0.0] * int(members.sum())
        assert float(found[members].sum()) == pytest.approx(0, abs=1e-9)
        alone = rollout.part(members.nonzero()[:, 0].tolist())
        assert torch.equal(run(alone, []), found[members]), "other groups do not matter"


@given(
    rollout=rollouts(tokens=2, numbers=2),
    lam=st.sampled_from((None, 0.1, 1.0)),
    truncation=st.sampled_from(("terminal", "bootstrap")),
)
def test_critic_targets(
    dtype: torch.dtype, rollout: Drawn, lam: float | None, truncation: Any
) -> None:
    config = replace(AlgorithmConfig(), truncation=truncation, lam_critic=0.3)
    drawn = rollout.to(dtype)

    def run(part: Drawn, own: list[int]) -> Tensor:
        return critic_targets(responses_of(drawn, part, own), config, lam_critic=lam)

    fixed = replace(
        config, length_adaptive_alpha=None, lam_policy=config.lam_critic if lam is None else lam
    )
    advantages = expected_advantages(rollout, "gae", fixed)
    returns = advantages + torch.where(rollout.mask, rollout.tokens[0], 0.0)
    check_per_token(drawn, run, returns, scale=100)


@given(rollout=rollouts(longest=40))
def test_length_adaptive_lambda(rollout: Drawn) -> None:
    config = AlgorithmConfig()
    alpha = config.length_adaptive_alpha
    assert alpha is not None

    def run(part: Drawn, _: list[int]) -> Tensor:
        found = actor_lambda(part.lengths, config)
        assert isinstance(found, Tensor)
        return found

    expected = [loops.adaptive_lambda(int(n), alpha) for n in rollout.lengths]
    check_per_response(rollout, run, expected, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["off", "sample", "population"])
@given(rollout=rollouts(tokens=1))
def test_whitening(dtype: torch.dtype, kind: Any, rollout: Drawn) -> None:
    """Moments are measured once, over the micro-batches: the same on every rank."""
    drawn, config = rollout.to(dtype), replace(AlgorithmConfig(), whiten_advantages=kind)
    parts = [drawn.soiled().part(own) for own in drawn.cut]
    merged = Moments.merge_all(Moments.of(part.tokens[0], part.mask) for part in parts)

    def run(part: Drawn, _: list[int]) -> Tensor:
        found = whiten_advantages(
            part.tokens[0], part.mask, config, merge_moments=lambda moments: merged
        )
        return torch.where(part.mask, found, 0.0) if kind == "off" else found

    rows = rollout.valid(rollout.tokens[0])
    numbers = [x for row in rows for x in row]
    middle, ddof = loops.mean(numbers), int(kind == "sample")
    spread = loops.variance(numbers, ddof)
    scale = math.sqrt(spread + 1e-8 if kind == "sample" else max(spread, 1e-8))
    whitened = [[(x - middle) / scale for x in row] for row in rows]
    # A tiny divisor blows up the rounding of the mean.
    check_per_token(
        drawn, run, rollout.spread(rows if kind == "off" else whitened), scale=1 / scale
    )


@given(rollout=rollouts(tokens=2), offset=st.sampled_from((0.0, 1e5)))
def test_moments_and_explained_variance(dtype: torch.dtype, rollout: Drawn, offset: float) -> None:
    """Also of numbers whose squares float32 could not tell apart."""
    drawn = rollout.replacing(rollout.tokens[0] + offset).to(dtype)
    assert torch.equal(drawn.tokens[0].double(), rollout.tokens[0] + offset), "exact in float32"
    found = ExplainedVariance()
    for part in (drawn.soiled().part(own) for own in drawn.cut):
        piece = ExplainedVariance.of(*part.tokens, part.mask)
        found = found.merge(ExplainedVariance.from_tensor(piece.to_tensor()))
    values, returns = ([x for row in rollout.valid(t) for x in row] for t in drawn.tokens)
    residuals = [r - v for v, r in zip(values, returns, strict=True)]
    assert found.returns.count == len(returns)
    for moments, numbers in ((found.returns, returns), (found.residuals, residuals)):
        assert moments.mean == pytest.approx(loops.mean(numbers), rel=1e-9, abs=1e-9)
        for ddof in (0, 1):
            expected = loops.variance(numbers, ddof)
            assert moments.variance(ddof) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    total = loops.variance(returns, 0)
    expected = 1 - loops.variance(residuals, 0) / total if total else 0.0
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    squares = [x * x for x in residuals]
    assert found.mse == pytest.approx(loops.mean(squares), rel=1e-9, abs=1e-9)
