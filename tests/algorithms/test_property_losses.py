# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Losses and gradients of drawn rollouts in any cut: policy, value, positive LM, KL, weights."""

from __future__ import annotations

import functools
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from megacurl.algorithms.aggregation import (
    LossAggMode,
    aggregate,
    global_denominators,
    prompt_token_counts,
    token_coefficients,
)
from megacurl.algorithms.importance import (
    Correction,
    IsKind,
    IsLevel,
    correct_staleness,
    importance_weights,
)
from megacurl.algorithms.kl import KLEstimator, kl_in_reward, kl_loss, kl_penalty
from megacurl.algorithms.policy_loss import PolicyStats, policy_loss
from megacurl.algorithms.positive_lm import positive_lm_loss
from megacurl.algorithms.value_loss import ValueStats, value_loss
from tests.algorithms import loops
from tests.algorithms.properties import check_close, check_loss, check_per_token
from tests.algorithms.strategies import Drawn, rollouts

MODES = get_args(LossAggMode)
LIMIT = 40
# Both ordinary log-probs and ones so far apart that their ratio is clamped.
SIZES = st.sampled_from((0.5, 4.0, 400.0))


class Weighing:
    """Coefficients of a mode from the counts of the whole rollout, as code and as loops."""

    def __init__(self, whole: Drawn, mode: Any, dtype: torch.dtype) -> None:
        self.mode, self.dtype = mode, dtype
        self.denominators = global_denominators(
            whole.lengths, correct=whole.correct, group=whole.group, max_length=LIMIT
        )
        self.prompt_tokens = prompt_token_counts(whole.lengths, whole.group)
        self.expected = loops.coefficients(
            whole.lengths.tolist(), whole.group.tolist(), mode, LIMIT
        )

    def __call__(self, part: Drawn, own: list[int]) -> Tensor:
        return token_coefficients(
            part.mask,
            part.cu_seqlens,
            self.mode,
            self.denominators,
            prompt_tokens=self.prompt_tokens[own],
            dtype=self.dtype,
        )

    def sum(self, rollout: Drawn, rows: list[list[tuple[float, float]]]) -> tuple[Any, ...]:
        """Expected loss, slopes [T] and the sum of the terms' sizes, of (loss, slope) by token."""
        pairs = list(zip(self.expected, rows, strict=True))
        terms = [c * loss for c, row in pairs for loss, _ in row]
        slopes = [[c * slope for _, slope in row] for c, row in pairs]
        return sum(terms), rollout.spread(slopes), sum(map(abs, terms))


@pytest.mark.parametrize("mode", MODES)
@given(rollout=rollouts(tokens=1))
def test_aggregate(dtype: torch.dtype, mode: Any, rollout: Drawn) -> None:
    drawn, weighing = rollout.to(dtype), Weighing(rollout, mode, dtype)

    def run(part: Drawn, own: list[int]) -> Tensor:
        return aggregate(part.tokens[0], part.mask, weighing(part, own))

    rows = [[(x, 1.0) for x in row] for row in rollout.valid(rollout.tokens[0])]
    check_loss(drawn, run, *weighing.sum(rollout, rows))
    per_token = [[c] * int(n) for c, n in zip(weighing.expected, rollout.lengths, strict=True)]
    check_per_token(drawn, weighing, rollout.spread(per_token))


RULES: dict[str, dict[str, Any]] = {
    "clip": {"eps_clip": 0.2, "eps_clip_high": 0.2},
    "clip-higher": {"eps_clip": 0.2, "eps_clip_high": 0.28},
    "clip-none": {"eps_clip": 1.0, "eps_clip_high": 1e9},
    "dual clip": {"eps_clip": 0.2, "eps_clip_high": 0.28, "dual_clip": 3.0},
    "tis": {"eps_clip": 0.2, "eps_clip_high": 0.28, "weighted": True},
    "gspo": {"eps_clip": 3e-4, "eps_clip_high": 4e-4, "sequences": True},
    "gspo dual tis": {
        "eps_clip": 0.2, "eps_clip_high": 0.28,
        "dual_clip": 3.0, "sequences": True, "weighted": True,
    },
}  # fmt: skip


def expected_policy(
    rollout: Drawn, rule: dict[str, Any]
) -> tuple[list[list[tuple[float, float]]], list[list[float]]]:
    """(loss, slope) of the tokens, and their exponents."""
    log_probs, old, advantages, weights = (rollout.valid(x) for x in rollout.tokens)
    options = {
        "low": rule["eps_clip"], "high": rule["eps_clip_high"], "dual": rule.get("dual_clip")
    }  # fmt: skip
    rows, exponents = [], []
    for new, start, adv, weight in zip(log_probs, old, advantages, weights, strict=True):
        gaps = [a - b for a, b in zip(new, start, strict=True)]
        if rule.get("sequences"):
            gaps = [loops.mean(gaps)] * len(gaps)
        factors = [abs(w) for w in weight] if rule.get("weighted") else [1.0] * len(gaps)
        pairs = [loops.policy(g, a, **options) for g, a in zip(gaps, adv, strict=True)]
        rows.append([(f * x, f * y) for f, (x, y) in zip(factors, pairs, strict=True)])
        exponents.append(gaps)
    return rows, exponents


@pytest.mark.parametrize("rule", RULES)
@given(
    rollout=SIZES.flatmap(lambda size: rollouts(tokens=4, largest=size)),
    mode=st.sampled_from(MODES),
)
def test_policy_loss(dtype: torch.dtype, rule: str, rollout: Drawn, mode: Any) -> None:
    drawn, weighing = rollout.to(dtype), Weighing(rollout, mode, dtype)
    options = dict(RULES[rule])
    sequences, weighted = options.pop("sequences", False), options.pop("weighted", False)

    def measure(part: Drawn, own: list[int]) -> tuple[Tensor, PolicyStats]:
        log_probs, old, advantages, weights = part.tokens
        return policy_loss(
            log_probs,
            old,
            advantages,
            part.mask,
            weighing(part, own),
            sequences=part.cu_seqlens if sequences else None,
            token_weights=weights.abs() if weighted else None,
            **options,
        )

    rows, exponents = expected_policy(rollout, RULES[rule])
    check_loss(drawn, lambda part, own: measure(part, own)[0], *weighing.sum(rollout, rows))
    pieces = [measure(drawn.soiled().part(own), own)[1] for own in drawn.cut]
    found = functools.reduce(PolicyStats.merge, pieces)
    assert float(found.tokens) == int(rollout.mask.sum())
    whole = measure(drawn, list(range(drawn.size)))[1].metrics()
    assert found.metrics() == pytest.approx(whole, rel=1e-5, abs=1e-5)
    ratios = [loops.policy(x, -1.0, low=1, high=0, dual=None)[0] for row in exponents for x in row]
    gap = max((abs(ratio - 1) for ratio in ratios), default=0.0)
    assert float(found.max_ratio_gap) == pytest.approx(gap, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("clip", [None, 0.2])
@given(
    rollout=SIZES.flatmap(lambda size: rollouts(tokens=3, largest=size)),
    half=st.booleans(),
    mode=st.sampled_from(MODES),
)
def test_value_loss(
    dtype: torch.dtype, clip: float | None, rollout: Drawn, half: bool, mode: Any
) -> None:
    drawn, weighing = rollout.to(dtype), Weighing(rollout, mode, dtype)

    def measure(part: Drawn, own: list[int]) -> tuple[Tensor, ValueStats]:
        values, returns, old = part.tokens
        return value_loss(
            values, returns, old, part.mask, weighing(part, own), value_clip=clip, half=half
        )

    columns = [rollout.valid(x) for x in rollout.tokens]
    rows = [
        [loops.value(*token, clip=clip, half=half) for token in zip(*row, strict=True)]
        for row in zip(*columns, strict=True)
    ]
    check_loss(drawn, lambda part, own: measure(part, own)[0], *weighing.sum(rollout, rows))
    pieces = [measure(drawn.soiled().part(own), own)[1] for own in drawn.cut]
    found = functools.reduce(ValueStats.merge, pieces)
    errors = [
        (v - r) ** 2
        for found_values, targets in zip(*columns[:2], strict=True)
        for v, r in zip(found_values, targets, strict=True)
    ]
    assert float(found.tokens) == len(errors)
    ignored = [loss > 0 and slope == 0 for row in rows for loss, slope in row]
    assert float(found.clipped) == sum(ignored)
    assert float(found.squared_error) == pytest.approx(sum(errors), rel=1e-5, abs=1e-6)


@given(rollout=rollouts(tokens=1, numbers=1), weighted=st.booleans())
def test_positive_lm_loss(dtype: torch.dtype, rollout: Drawn, weighted: bool) -> None:
    """Also where every response is right, and where none is."""
    drawn, weighing = rollout.to(dtype), Weighing(rollout, "token-mean", dtype)
    total = weighing.denominators.correct_tokens

    def run(part: Drawn, own: list[int]) -> Tensor:
        weights = part.numbers[0].abs() if weighted else None
        return positive_lm_loss(
            part.tokens[0],
            part.mask,
            part.correct,
            part.cu_seqlens,
            correct_tokens=total,
            weights=weights,
        )

    right = rollout.correct.tolist()
    rows = rollout.valid(rollout.tokens[0])
    assert total == sum(len(row) for row, chosen in zip(rows, right, strict=True) if chosen)
    factors = [
        (abs(float(w)) if weighted else 1.0) * chosen / max(total, 1)
        for w, chosen in zip(rollout.numbers[0], right, strict=True)
    ]
    terms = [-f * x for f, row in zip(factors, rows, strict=True) for x in row]
    slopes = rollout.spread([[-f] * len(row) for f, row in zip(factors, rows, strict=True)])
    check_loss(drawn, run, sum(terms), slopes, scale=sum(map(abs, terms)))


KL_KINDS = get_args(KLEstimator)


@pytest.mark.parametrize("estimator", KL_KINDS)
@given(
    rollout=SIZES.flatmap(lambda size: rollouts(tokens=3, largest=size)),
    mode=st.sampled_from(MODES),
)
def test_kl(dtype: torch.dtype, estimator: Any, rollout: Drawn, mode: Any) -> None:
    """As a loss, and as a penalty in the reward."""
    drawn, weighing = rollout.to(dtype), Weighing(rollout, mode, dtype)
    settings: dict[str, Any] = {"kl_coef": 0.5, "estimator": estimator}

    def loss(part: Drawn, own: list[int]) -> Tensor:
        log_probs, ref, _ = part.tokens
        return kl_loss(log_probs, ref, part.mask, weighing(part, own), estimator=estimator)

    def penalty(part: Drawn, _: list[int]) -> Tensor:
        return kl_penalty(*part.tokens[:2], part.mask, **settings)

    def rewards(part: Drawn, _: list[int]) -> Tensor:
        old, ref, given_rewards = part.tokens
        shaped = kl_in_reward(given_rewards, old, ref, part.mask, **settings)
        return torch.where(part.mask, shaped, 0.0)

    columns = [rollout.valid(x) for x in rollout.tokens]
    rows = [
        [loops.kl(p - q, estimator) for p, q in zip(*row, strict=True)]
        for row in zip(*columns[:2], strict=True)
    ]
    check_loss(drawn, loss, *weighing.sum(rollout, rows))
    penalties = rollout.spread([[0.5 * estimate for estimate, _ in row] for row in rows])
    check_per_token(drawn, penalty, penalties)
    shaped = torch.where(rollout.mask, rollout.tokens[2], 0.0) - penalties
    check_per_token(drawn, rewards, shaped)


@pytest.mark.parametrize("kind", get_args(IsKind))
@pytest.mark.parametrize("level", get_args(IsLevel))
@given(rollout=SIZES.flatmap(lambda size: rollouts(tokens=2, largest=size)))
def test_importance_weights(dtype: torch.dtype, kind: Any, level: Any, rollout: Drawn) -> None:
    options: dict[str, Any] = {"kind": kind, "level": level, "low": 0.5, "high": 2.0}

    def run(part: Drawn, _: list[int]) -> Tensor:
        old, behaviour = part.tokens
        old = old.clone().requires_grad_()
        weights = importance_weights(old, behaviour, part.mask, part.cu_seqlens, **options)
        assert not weights.requires_grad, "they are constants"
        return weights

    gaps = [
        [p - q for p, q in zip(*row, strict=True)]
        for row in zip(*(rollout.valid(x) for x in rollout.tokens), strict=True)
    ]
    expected = rollout.spread(loops.importance(gaps, **options))
    check_per_token(rollout.to(dtype), run, expected)


@given(rollout=rollouts(tokens=4))
def test_corrections_without_a_lag_are_one(dtype: torch.dtype, rollout: Drawn) -> None:
    """Behaviour and old policy the same: the three give the same bits of loss and gradient."""
    drawn, weighing = rollout.to(dtype), Weighing(rollout, "token-mean", dtype)
    found = []
    for correction in get_args(Correction):
        part = drawn.soiled()
        new, old, advantages, _ = part.tokens
        leaf = new.clone().requires_grad_()
        start, weights = correct_staleness(
            old, old.clone(), part.mask, part.cu_seqlens, correction=correction
        )
        loss, _ = policy_loss(
            leaf,
            start,
            advantages,
            part.mask,
            weighing(part, list(range(part.size))),
            token_weights=weights,
            eps_clip=0.2,
            eps_clip_high=0.28,
        )
        found.append(torch.cat([loss[None], *torch.autograd.grad(loss, leaf)]).detach())
    check_close(found[0], found[1], dtype)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
