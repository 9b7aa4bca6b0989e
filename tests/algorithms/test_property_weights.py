# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""CVPO's weights of drawn rollouts: spread of the values, W_S, W_D and their product."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from megacurl.algorithms.advantages import (
    apply_weights,
    stochasticity_amplitudes,
    trajectory_weights,
)
from megacurl.algorithms.stochasticity import (
    SpreadSet,
    group_mean_spread,
    stochasticity_weight,
    value_spread,
)
from megacurl.config.schema import CVPOConfig
from megacurl.curriculum.cvpo import CVPOCurriculum
from megacurl.curriculum.difficulty import BOTTLENECK, EARLY, difficulty_weight
from tests.algorithms import loops
from tests.algorithms.properties import check_close, check_per_response, check_per_token
from tests.algorithms.strategies import Drawn, rollouts

SPREAD_SETS = get_args(SpreadSet)
AMPLITUDES = st.tuples(st.sampled_from((0.0, 0.3, 2.0)), st.sampled_from((0.0, 0.3, 1.0)))
STEEPNESS = st.tuples(*[st.sampled_from((0.0, 1.0, 50.0, 1e6))] * 2)


@pytest.mark.parametrize("stat", ["std", "var"])
@pytest.mark.parametrize("ddof", [0, 1])
@given(rollout=rollouts(tokens=1), offset=st.sampled_from((0.0, 8000.0)))
def test_value_spread(
    dtype: torch.dtype, stat: Any, ddof: Any, rollout: Drawn, offset: float
) -> None:
    """Also of values far from 0, whose squares float32 could not hold."""
    drawn = rollout.replacing(rollout.tokens[0] + offset).to(dtype)

    def run(part: Drawn, _: list[int]) -> Tensor:
        return value_spread(part.tokens[0], part.mask, part.cu_seqlens, stat=stat, ddof=ddof)

    rows = rollout.valid(rollout.tokens[0])
    expected = [loops.variance(row, ddof) for row in rows]
    if stat == "std":
        expected = [math.sqrt(x) for x in expected]
    # The sums are formed in float64 whatever the values are.
    check_per_response(drawn, run, expected, dtype=torch.float64, scale=1e4)
    short = drawn.lengths <= ddof
    assert bool((run(drawn, [])[short] == 0).all()), "too few tokens have no spread"


def keys(rollout: Drawn, over: str) -> list[object]:
    """Which responses share a mean."""
    return [
        {"group": g, "group_by_outcome": (g, c), "batch": 0}[over]
        for g, c in zip(rollout.group.tolist(), rollout.correct.tolist(), strict=True)
    ]


@pytest.mark.parametrize("over", SPREAD_SETS)
@given(rollout=rollouts(numbers=1), filtered=st.booleans())
def test_group_mean_spread(dtype: torch.dtype, over: Any, rollout: Drawn, filtered: bool) -> None:
    """``filtered``: responses without a token count in no mean, and a group may have no other."""
    drawn = rollout.to(dtype)

    def kept(part: Drawn) -> Tensor | None:
        return part.lengths > 0 if filtered else None

    def spread_of(part: Drawn) -> Tensor:
        return part.numbers[0].abs().sqrt()  # no sum of roots is exact: the order could show

    def run(part: Drawn, _: list[int]) -> Tensor:
        return group_mean_spread(
            spread_of(part), part.group, part.correct, over=over, include=kept(part)
        )

    spread = spread_of(drawn).tolist()
    chosen = [True] * rollout.size if not filtered else (rollout.lengths > 0).tolist()
    expected = loops.peer_means(spread, keys(rollout, over), chosen)
    check_per_response(drawn, run, expected, dtype=torch.float64, of_group=True)


def score_of(rollout: Drawn) -> Tensor:
    """Scores [N] by the last number of a response: 1 and 0 among them, float64."""
    return (rollout.numbers[-1].abs() / 2).clamp(max=1)


@pytest.mark.parametrize("direction", ["equation", "prose"])
@pytest.mark.parametrize("scale", ["raw", "relative"])
@given(rollout=rollouts(numbers=3), alphas=AMPLITUDES, lambdas=STEEPNESS, graded=st.booleans())
def test_stochasticity_weight(
    direction: Any,
    scale: Any,
    rollout: Drawn,
    alphas: tuple[float, float],
    lambdas: tuple[float, float],
    graded: bool,
) -> None:
    def run(part: Drawn, _: list[int]) -> Tensor:
        spread, middle = (x.abs() for x in part.numbers[:2])
        return stochasticity_weight(
            spread,
            middle,
            score_of(part) if graded else part.correct,
            alpha_p=alphas[0],
            alpha_n=alphas[1],
            lambda_p=lambdas[0],
            lambda_n=lambdas[1],
            direction=direction,
            scale=scale,
        )

    scores = score_of(rollout) if graded else rollout.correct.double()
    rows = zip(*(x.abs().tolist() for x in (*rollout.numbers[:2], scores)), strict=True)
    options: dict[str, Any] = {"alphas": alphas, "lambdas": lambdas}
    expected = [loops.w_s(*row, direction=direction, scale=scale, **options) for row in rows]
    check_per_response(rollout, run, expected, dtype=torch.float64)
    found = run(rollout, [])
    right, wrong = scores == 1, scores == 0
    assert bool(((found[right] >= 1) & (found[right] <= 1 + alphas[0])).all())
    assert bool(((found[wrong] <= 1) & (found[wrong] >= 1 - alphas[1])).all())


@given(
    rollout=rollouts(numbers=3),
    over=st.sampled_from(SPREAD_SETS),
    switches=st.tuples(*[st.booleans()] * 5),
)
def test_trajectory_weights(
    rollout: Drawn, over: Any, switches: tuple[bool, bool, bool, bool, bool]
) -> None:
    """All of CVPO's switches; questions of weight 0, and groups that were left out whole."""
    use_w_s, use_w_d, normalize, filtered, graded = switches
    config = replace(
        CVPOConfig(),
        use_w_s=use_w_s,
        use_w_d=use_w_d,
        normalize_w=normalize,
        ws_mu=over,
        ws_outcome="score" if graded else "correct",
    )

    def kept(part: Drawn) -> Tensor:
        return part.lengths > 0 if filtered else torch.ones_like(part.correct)

    def measures(part: Drawn) -> tuple[Tensor, Tensor]:
        spread, difficulty = (x.abs().sqrt() for x in part.numbers[:2])
        return spread, difficulty

    def run(part: Drawn, _: list[int], column: int = 0) -> Tensor:
        spread, difficulty = measures(part)
        return trajectory_weights(
            spread,
            part.group,
            part.correct,
            difficulty if use_w_d else None,
            config,
            score=score_of(part) if graded else None,
            include=kept(part) if filtered else None,
        )[column]

    for column, expected in enumerate(expected_weights(rollout, config, kept(rollout), measures)):
        check_per_response(
            rollout,
            partial(run, column=column),
            expected,
            dtype=torch.float64,
            of_group=True,
        )


def expected_weights(
    rollout: Drawn,
    config: CVPOConfig,
    kept: Tensor,
    measures: Callable[[Drawn], tuple[Tensor, Tensor]],
) -> tuple[list[float], list[float]]:
    """W_S and W_D of every response by the loops."""
    spread, difficulty = (x.tolist() for x in measures(rollout))
    scores = score_of(rollout) if config.ws_outcome == "score" else rollout.correct.double()
    chosen = kept.tolist()
    w_s, w_d = [1.0] * rollout.size, [1.0] * rollout.size
    if config.use_w_s:
        options: dict[str, Any] = {
            "alphas": stochasticity_amplitudes(config),
            "lambdas": (config.ws_lambda_p, config.ws_lambda_n),
            "direction": config.ws_direction,
            "scale": config.ws_scale,
        }
        means = loops.peer_means(spread, keys(rollout, config.ws_mu), chosen)
        rows = zip(spread, means, scores.tolist(), strict=True)
        w_s = [loops.w_s(*row, **options) for row in rows]
    if config.use_w_d:
        w_d = difficulty
    if config.normalize_w:
        products = [s * d for s, d, k in zip(w_s, w_d, chosen, strict=True) if k]
        w_s = [s / (loops.mean(products) or 1.0) for s in w_s]
    return w_s, w_d


@pytest.mark.parametrize("count", [0, 1, 2])
@given(rollout=rollouts(tokens=1, numbers=2))
def test_apply_weights(dtype: torch.dtype, count: int, rollout: Drawn) -> None:
    """Garbage stays where it is: it reaches no valid token."""
    drawn = rollout.to(dtype)

    def run(part: Drawn, _: list[int]) -> Tensor:
        w_s, w_d = (*(x.abs() for x in part.numbers[:count]), None, None)[:2]
        weighted = apply_weights(part.tokens[0], w_s, w_d, part.cu_seqlens)
        return torch.where(part.mask, weighted, 0.0)

    rows = [
        [x * math.prod(abs(float(w[i])) for w in rollout.numbers[:count]) for x in row]
        for i, row in enumerate(rollout.valid(rollout.tokens[0]))
    ]
    check_per_token(drawn, run, rollout.spread(rows))


SHAPES = st.sampled_from((EARLY, BOTTLENECK, (1e4, 0.4, 1e4, 0.6), (0.0, 0.0, 0.0, 0.0)))


@pytest.mark.parametrize("phase", ["early", "bottleneck"])
@given(accuracies=st.lists(st.floats(0, 1)), shape=SHAPES)
def test_difficulty_weight(
    phase: Any, accuracies: list[float], shape: tuple[float, float, float, float]
) -> None:
    found = difficulty_weight(
        torch.tensor(accuracies, dtype=torch.float64), phase, early=shape, bottleneck=shape
    )
    expected = [loops.w_d(rho, shape, phase == "bottleneck") for rho in accuracies]
    check_close(found, torch.tensor(expected, dtype=torch.float64), torch.float64)
    assert bool(((found >= 0) & (found <= 2)).all())


@given(
    rounds=st.lists(rollouts(), min_size=1, max_size=4),
    rho=st.sampled_from(("latest", "posterior", "previous", "ema")),
)
def test_curriculum_does_not_see_the_order(rounds: list[Drawn], rho: Any) -> None:
    """Weights by question id, over rounds in which questions come, go, are all right or wrong."""
    config = replace(CVPOConfig(), wd_rho=rho)
    curricula = CVPOCurriculum(config), CVPOCurriculum(config)
    for drawn in rounds:
        weights = []
        for curriculum, part in zip(curricula, (drawn, drawn.part(drawn.order)), strict=True):
            questions = [str(g) for g in part.group.tolist()]
            weights.append(curriculum.observe(questions, part.correct.tolist()))
        assert weights[0] == weights[1]
        assert all(math.isfinite(w) and 0 <= w <= 2 for w in weights[0].values())
        assert curricula[0].phase == curricula[1].phase
