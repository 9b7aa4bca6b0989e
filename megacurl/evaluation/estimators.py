# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Accuracy estimators from the number of correct samples of each question."""

from __future__ import annotations

import math
from collections.abc import Sequence


def avg_at_k(num_correct: Sequence[int], k: int) -> float:
    """Mean accuracy over all questions and their ``k`` samples (CVPO paper, section 4: avg@32).

    ``num_correct`` [questions] counts the correct samples of each question. Raises ValueError
    when it is empty or a count is outside 0..k.
    """
    _check_counts(num_correct, k)
    return sum(num_correct) / (len(num_correct) * k)


def pass_at_k(num_correct: Sequence[int], n: int, k: int) -> float:
    """Mean over questions of the chance that one of ``k`` samples drawn out of ``n`` is correct.

    Unbiased: 1 - C(n-c, k) / C(n, k) for c correct out of n (Chen et al. 2021, "Evaluating Large
    Language Models Trained on Code", eq. 1). ``num_correct`` [questions] holds the c. Raises
    ValueError unless 1 <= k <= n, and as :func:`avg_at_k` does.
    """
    if not 1 <= k <= n:
        raise ValueError(
            f"pass@k needs 1 <= k <= n, got k={k}, n={n}; draw more samples or lower k"
        )
    _check_counts(num_correct, n)
    # Exact integers: no product of factors near 1 and no difference of near-equal floats.
    draws = math.comb(n, k)
    hits = sum(draws - math.comb(n - correct, k) for correct in num_correct)
    return hits / (draws * len(num_correct))


def _check_counts(num_correct: Sequence[int], n: int) -> None:
    if not num_correct:
        raise ValueError("num_correct is empty; give at least one question")
    if n < 1:
        raise ValueError(f"number of samples is {n}; give at least 1")
    for index, correct in enumerate(num_correct):
        if not 0 <= correct <= n:
            raise ValueError(f"num_correct[{index}] is {correct}, outside 0..{n}")
