# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of a mean over questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_RESAMPLES = 10_000
_CHUNK = 500


def question_interval(
    scores: Sequence[float], seed: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean of per-question ``scores`` in 0..1 (low, high).

    Percentile bootstrap over questions (Efron and Tibshirani 1993, chapter 13): the samples of a
    question stay together, since they are not independent. Where every question scores 0, or
    every one scores 1, resampling sees no spread; the Clopper-Pearson bound for that many
    questions is given instead. One question alone says nothing: (0, 1).

    Raises ValueError when ``scores`` is empty or a score is outside 0..1.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.size == 0:
        raise ValueError("scores is empty; give at least one question")
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"scores must be within 0..1, got {values.min()}..{values.max()}")
    n, tail = values.size, (1 - confidence) / 2
    if n == 1:
        return 0.0, 1.0
    if values.min() == values.max() and values[0] in (0.0, 1.0):
        margin = 1 - tail ** (1 / n)
        return (0.0, margin) if values[0] == 0 else (1 - margin, 1.0)
    low, high = np.quantile(_resampled_means(values, seed), (tail, 1 - tail))
    return float(low), float(high)


def _resampled_means(values: np.ndarray, seed: int) -> np.ndarray:
    """[_RESAMPLES] means of n questions drawn with replacement; the same draws for one seed, n."""
    generator = np.random.Generator(np.random.PCG64(seed))
    n = values.size
    # In chunks: 10,000 rows of a large benchmark at once would take hundreds of megabytes.
    means = [
        values[generator.integers(0, n, size=(_CHUNK, n))].mean(axis=1)
        for _ in range(_RESAMPLES // _CHUNK)
    ]
    return np.concatenate(means)
