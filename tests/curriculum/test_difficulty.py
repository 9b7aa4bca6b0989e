# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""W_D: its shape in both phases and where it peaks."""

from __future__ import annotations

import pytest
import torch

from megacurl.curriculum.difficulty import difficulty_peak, difficulty_weight

GRID = torch.linspace(0, 1, 100001, dtype=torch.float64)


@pytest.mark.parametrize(
    ("phase", "rho", "weight"), [("early", 0.49818, 1.20968), ("bottleneck", 0.21982, 1.19319)]
)
def test_peak_is_the_largest_value_of_the_curve(phase: str, rho: float, weight: float) -> None:
    peak, height = difficulty_peak(phase)
    curve = difficulty_weight(GRID, phase)
    assert peak == pytest.approx(rho, abs=1e-5) and height == pytest.approx(weight, abs=1e-5)
    assert peak == pytest.approx(float(GRID[curve.argmax()]), abs=1e-5)
    assert height >= float(curve.max()) - 1e-12


def test_early_phase_hardly_suppresses_anything() -> None:
    curve = difficulty_weight(GRID, "early")
    assert float(curve.min()) > 1.044 and float(curve.max()) < 1.2097


def test_bottleneck_phase_gives_solved_questions_exactly_nothing() -> None:
    curve = difficulty_weight(GRID, "bottleneck")
    assert float(curve[-1]) == 0.0 and bool((curve[:-1] > 0).all())
    posterior_of_16_of_16 = difficulty_weight(torch.tensor([17 / 18]), "bottleneck")
    assert posterior_of_16_of_16.item() == pytest.approx(0.102, abs=1e-3)


@pytest.mark.parametrize(
    ("shape", "peak"), [((5.0, 0.5, 0.0, 0.0), 1.0), ((0.0, 0.0, 5.0, 0.5), 0.0)]
)
def test_monotone_shapes_peak_at_an_end(
    shape: tuple[float, float, float, float], peak: float
) -> None:
    found, height = difficulty_peak("early", early=shape)
    assert found == peak
    assert height == pytest.approx(float(difficulty_weight(GRID, "early", early=shape).max()))


def test_steep_shapes_do_not_overflow() -> None:
    shape = (1e4, 0.4, 1e4, 0.6)
    weight = difficulty_weight(GRID, "early", early=shape)
    assert bool(weight.isfinite().all())
    assert 0.4 <= difficulty_peak("early", early=shape)[0] <= 0.6


@pytest.mark.parametrize("rho", [-0.1, 1.1, float("nan")])
def test_impossible_accuracies_are_refused(rho: float) -> None:
    with pytest.raises(ValueError, match="accuracies run from"):
        difficulty_weight(torch.tensor([0.5, rho]), "early")


def test_unknown_phase_is_named() -> None:
    with pytest.raises(ValueError, match="phase is 'late'"):
        difficulty_weight(torch.tensor([0.5]), "late")
    with pytest.raises(ValueError, match="phase is 'late'"):
        difficulty_peak("late")
