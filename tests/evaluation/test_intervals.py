# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Confidence intervals over questions."""

from __future__ import annotations

import random

import pytest

from megacurl.evaluation.intervals import question_interval


def test_it_is_that_of_the_normal_approximation_for_many_questions() -> None:
    draw = random.Random(0)
    scores = [draw.random() for _ in range(400)]
    mean = sum(scores) / 400
    error = (sum((s - mean) ** 2 for s in scores) / 400 / 400) ** 0.5
    low, high = question_interval(scores, seed=1)
    assert low == pytest.approx(mean - 1.96 * error, abs=0.05 * error)
    assert high == pytest.approx(mean + 1.96 * error, abs=0.05 * error)


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(3)
    hits = 0
    for seed in range(60):
        # A question has its own chance, uniform in 0..1, and 4 samples: the true mean is 0.5.
        chances = [draw.random() for _ in range(50)]
        scores = [sum(draw.random() < p for _ in range(4)) / 4 for p in chances]
        low, high = question_interval(scores, seed)
        hits += low <= 0.5 <= high
    assert 52 <= hits <= 60


def test_samples_of_a_question_are_no_independent_evidence() -> None:
    # 20 questions that are always or never solved: a wide interval, however many samples each.
    low, high = question_interval([1.0, 0.0] * 10, seed=1)
    assert (low, high) == (0.3, 0.7)


def test_the_seed_decides() -> None:
    scores = [0.1, 0.9, 0.4, 0.35, 0.2, 0.77]
    assert question_interval(scores, 5) == question_interval(scores, 5)
    assert question_interval(scores, 5) != question_interval(scores, 6)


@pytest.mark.parametrize("n", [2, 30, 500])
def test_all_or_nothing_gives_the_exact_bound(n: int) -> None:
    low, high = question_interval([0.0] * n, seed=1)
    assert low == 0.0
    assert (1 - high) ** n == pytest.approx(0.025)  # so many failures in a row happen that often
    assert question_interval([1.0] * n, seed=1) == pytest.approx((1 - high, 1.0))


def test_one_question_says_nothing() -> None:
    assert question_interval([0.75], seed=1) == (0.0, 1.0)


@pytest.mark.parametrize("scores", [[], [0.5, 1.5], [float("nan"), 0.0]])
def test_bad_scores_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        question_interval(scores, seed=1)
