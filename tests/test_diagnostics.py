# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A step's diagnostics against plain Python, on one and two ranks, with garbage behind the mask."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from megacurl.trajectory import Trajectory
from tests import jobs
from tests.diagnostics_jobs import Invented, diagnose_invented, invent
from tests.tiny import make_trajectories
from tests.world import World

TRAJECTORIES = [
    # Group 0 is always wrong, group 1 half right, group 2 always right.
    dataclasses.replace(t, correct=right, reward=1.0 if right else -1.0)
    for i, t in enumerate(make_trajectories(groups=3, n=4, seed=3))
    for right in [(False, i % 2 == 0, True)[t.group]]
]


def run(
    world: Callable[[int], World],
    ranks: int,
    garbage: float = math.nan,
    trajectories: list[Trajectory] = TRAJECTORIES,
    **flat: Any,
) -> dict[str, float]:
    config = jobs.settings("no model is built", **{"overlong_filter": True, **flat})
    everyone = world(ranks).run(diagnose_invented, config, trajectories, garbage)
    assert all(found == everyone[0] for found in everyone)
    metrics: dict[str, float] = everyone[0]
    return metrics


def counted() -> list[tuple[Trajectory, Invented]]:
    """Responses that the overlong filter leaves."""
    rows = [(t, invent(i, len(t.response_ids))) for i, t in enumerate(TRAJECTORIES)]
    left = [row for row in rows if not row[0].truncated]
    assert 6 < len(left) < len(rows)
    return left


def explained(pairs: list[tuple[float, float]]) -> float:
    values, returns = np.array(pairs).T
    return float(1 - (returns - values).var() / returns.var())


@pytest.mark.parametrize(
    ("ranks", "garbage"), [(1, math.nan), (1, 1e30), (2, math.nan), (2, math.inf)]
)
def test_every_number_equals_that_of_plain_python(
    world: Callable[[int], World], ranks: int, garbage: float
) -> None:
    found = run(world, ranks, garbage)
    rows = counted()
    level = ("hard", "medium", "easy")
    expected: dict[str, float] = {}

    def p(value: float) -> float:
        return min(max((value + 1) / 2, 0.0), 1.0)

    start = [(p(x.values[0]), float(t.correct)) for t, x in rows]
    end = [(p(x.values[-1]), float(t.correct)) for t, x in rows]
    expected["critic/brier"] = float(np.mean([(a - y) ** 2 for a, y in start]))
    expected["critic/brier_end"] = float(np.mean([(a - y) ** 2 for a, y in end]))
    spread = np.var([y for _, y in start])
    expected["critic/brier_skill"] = float(1 - expected["critic/brier"] / spread)
    error = 0.0
    for k in range(10):
        inside = [(a, y) for a, y in start if k == min(int(a * 10), 9)]
        name = f"{10 * k}-{10 * k + 10}"
        expected[f"critic/reliability_share/{name}"] = len(inside) / len(rows)
        if inside:
            gap = float(np.mean([y - a for a, y in inside]))
            expected[f"critic/reliability/{name}"] = gap
            error += abs(gap) * len(inside) / len(rows)
    expected["critic/calibration_error"] = error

    tokens = [
        (v, r, 4 * k // len(x.values), t.group)
        for t, x in rows
        for k, (v, r) in enumerate(zip(x.values, x.returns, strict=True))
    ]
    for q in range(4):
        pairs = [(v, r) for v, r, quarter, _ in tokens if quarter == q]
        expected[f"critic/ev_position/q{q + 1}"] = explained(pairs)
    for g in range(3):
        pairs = [(v, r) for v, r, _, group in tokens if group == g]
        expected[f"critic/ev_difficulty/{level[g]}"] = explained(pairs)

    sigma = np.array([x.sigma for _, x in rows])
    entropy = np.array([np.mean(x.entropy) for _, x in rows])
    group = np.array([t.group for t, _ in rows])
    means = [np.array([x[group == g].mean() for g in group]) for x in (sigma, entropy)]
    corr, within = "cvpo/sigma_entropy_corr", "cvpo/sigma_entropy_corr_within"
    expected[corr] = float(np.corrcoef(sigma, entropy)[0, 1])
    expected[within] = float(np.corrcoef(sigma - means[0], entropy - means[1])[0, 1])

    weights = np.array([x.weight for _, x in rows])
    expected["cvpo/weight_ess"] = float(weights.sum() ** 2 / (len(rows) * (weights**2).sum()))
    mass = np.array([np.abs(x.advantages).sum() for _, x in rows])
    right = np.array([t.correct for t, _ in rows])
    expected["advantage/mass/correct"] = float(mass[right].sum() / mass.sum())
    expected["advantage/mass/wrong"] = float(mass[~right].sum() / mass.sum())
    for g in range(3):
        expected[f"advantage/mass/{level[g]}"] = float(mass[group == g].sum() / mass.sum())
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_without_a_critic_nothing_of_it_is_left(world: Callable[[int], World]) -> None:
    with_one, without = run(world, 2), run(world, 2, preset="grpo")
    assert {name.partition("/")[0] for name in without} == {"cvpo", "advantage"}
    assert without == {name: with_one[name] for name in without}
    assert set(without) == {
        "cvpo/weight_ess",
        *(f"advantage/mass/{part}" for part in ("correct", "wrong", "hard", "medium", "easy")),
    }


def test_a_batch_without_a_valid_token_has_nothing_to_tell(world: Callable[[int], World]) -> None:
    cut = [dataclasses.replace(t, truncated=True) for t in TRAJECTORIES]
    assert run(world, 2, trajectories=cut) == {}
