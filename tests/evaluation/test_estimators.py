# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Estimators against enumeration of every draw."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from megacurl.evaluation.estimators import avg_at_k, pass_at_k


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_pass_at_k_equals_the_share_of_draws_with_a_hit(n: int) -> None:
    for correct in range(n + 1):
        samples = [True] * correct + [False] * (n - correct)
        for k in range(1, n + 1):
            draws = list(combinations(samples, k))
            expected = sum(map(any, draws)) / len(draws)
            assert pass_at_k([correct], n, k) == pytest.approx(expected, rel=1e-15, abs=0)


def test_pass_at_1_is_the_accuracy_and_pass_at_n_the_share_of_solved_questions() -> None:
    counts = [0, 3, 32, 1]
    assert pass_at_k(counts, 32, 1) == avg_at_k(counts, 32) == 36 / 128
    assert pass_at_k(counts, 32, 32) == 0.75


def test_large_n_is_exact_where_floats_cancel() -> None:
    # One hit in n: the chance is exactly k / n. A float product loses this by ~1e-12 here.
    assert pass_at_k([1], 100_000, 7) == 7 / 100_000
    # All but two correct: a miss needs both k draws wrong, so 1 - 1 / C(n, 2).
    n = 2048
    assert pass_at_k([n - 2], n, 2) == 1 - 1 / math.comb(n, 2)


def test_more_draws_never_hurt() -> None:
    values = [pass_at_k([3, 0, 11], 64, k) for k in range(1, 65)]
    assert values == sorted(values)
    assert values[-1] == 2 / 3


@pytest.mark.parametrize("k", [0, 5, -1])
def test_k_outside_the_samples_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"got k={k}, n=4"):
        pass_at_k([1], 4, k)


@pytest.mark.parametrize(
    ("counts", "n", "message"),
    [([], 4, "empty"), ([1, 5], 4, r"num_correct\[1\] is 5"), ([-1], 4, "is -1"), ([0], 0, "is 0")],
)
def test_impossible_counts_are_refused(counts: list[int], n: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        avg_at_k(counts, n)
