# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Quarters of responses, levels of questions, and the explained variance of each."""

from __future__ import annotations

import math

import pytest
import torch

from megacurl.algorithms.metrics import ExplainedVariance, explained_variance
from megacurl.algorithms.strata import (
    LEVELS,
    QUARTERS,
    explained_variance_by,
    question_level,
    response_quarter,
)
from tests.algorithms.batches import make_batch, noise


def test_quarters_count_valid_tokens_only() -> None:
    batch = make_batch()
    found = response_quarter(batch.mask, batch.cu_seqlens)
    assert bool(((found >= 0) & (found <= 3)).all())
    for mask, quarter in zip(
        batch.mask.split(batch.lengths), found.split(batch.lengths), strict=True
    ):
        valid = quarter[mask].tolist()
        assert valid == [4 * k // len(valid) for k in range(len(valid))]


def test_quarters_of_short_responses() -> None:
    mask = torch.ones(1 + 2 + 3 + 4 + 8, dtype=torch.bool)
    found = response_quarter(mask, torch.tensor([0, 1, 3, 6, 10, 18], dtype=torch.int32))
    rows = [[0], [0, 2], [0, 1, 2], [0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3]]
    assert [r.tolist() for r in found.split([1, 2, 3, 4, 8])] == rows
    nothing = torch.zeros(0, dtype=torch.bool)
    assert response_quarter(nothing, torch.tensor([0])).tolist() == []
    assert response_quarter(nothing, torch.tensor([0, 0])).tolist() == []


def test_levels_by_the_accuracy_of_the_question() -> None:
    # Accuracies 0.3, 0.4, 0.8, 0 and 1; a question's responses are not side by side.
    rights = {0: (3, 10), 1: (4, 10), 2: (8, 10), 3: (0, 2), 4: (1, 1)}
    rows = [(q, k < right) for q, (right, of) in rights.items() for k in range(of)]
    rows = rows[::2] + rows[1::2]
    level = question_level(
        torch.tensor([correct for _, correct in rows]),
        torch.tensor([q for q, _ in rows]),
        hard_up_to=0.3,
        easy_from=0.8,
    )
    expected = {0: "hard", 1: "medium", 2: "easy", 3: "hard", 4: "easy"}
    assert [LEVELS[k] for k in level.tolist()] == [expected[q] for q, _ in rows]


def test_levels_refuse_what_makes_no_sense() -> None:
    two, three = torch.zeros(2, dtype=torch.long), torch.zeros(3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"correct has shape \(2,\) and group \(3,\)"):
        question_level(two.bool(), three, hard_up_to=0.3, easy_from=0.8)
    with pytest.raises(ValueError, match="cannot be both"):
        question_level(two.bool(), two, hard_up_to=0.8, easy_from=0.8)


@pytest.mark.parametrize(
    "cut",
    [
        [[0, 1, 2, 3, 4, 5, 6]],
        [[0], [1], [2], [3], [4], [5], [6]],
        [[6, 5, 4], [3, 2], [1, 0]],
        [[2], [0, 3, 6], [1, 4, 5]],
    ],
)
@pytest.mark.parametrize("garbage", [math.nan, 1e30])
def test_parts_of_ranks_merge_to_the_whole(cut: list[list[int]], garbage: float) -> None:
    batch = make_batch()
    returns = noise(batch, 1) + 5
    values = returns + 0.5 * noise(batch, 2)
    quarter = response_quarter(batch.mask, batch.cu_seqlens)
    merged = [ExplainedVariance()] * len(QUARTERS)
    for sequences in cut:
        part, (v, r) = batch.part(sequences, values, returns)
        found = explained_variance_by(
            torch.where(part.mask, v, garbage),
            torch.where(part.mask, r, garbage),
            part.mask,
            response_quarter(part.mask, part.cu_seqlens),
            len(QUARTERS),
        )
        merged = [one.merge(other) for one, other in zip(merged, found, strict=True)]
    for k, one in enumerate(merged):
        inside = batch.mask & (quarter == k)
        assert one.returns.count == int(inside.sum()) > 0
        assert one.value == pytest.approx(explained_variance(values, returns, inside), rel=1e-9)
    assert sum(one.returns.count for one in merged) == int(batch.mask.sum())
