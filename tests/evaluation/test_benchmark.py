# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Verdicts as schema metrics."""

from __future__ import annotations

import numpy as np
import pytest

from megacurl.evaluation.benchmark import score_eval
from megacurl.observe.schema import check_names

VERDICTS = [
    [True, True, False, False],
    [False, False, False, False],
    [True, True, True, True],
]


def test_scores_by_hand() -> None:
    metrics = score_eval("math", VERDICTS, ["easy", "Level 5", "easy"])
    assert metrics == {
        "eval/math/avg@4": 0.5,
        # C(2,2) / C(4,2) of the draws of question 0 miss.
        "eval/math/pass@2": pytest.approx((5 / 6 + 0 + 1) / 3, rel=1e-15),
        "eval/math/pass@4": 2 / 3,
        "eval/math/level/easy": 0.75,
        "eval/math/level/Level_5": 0.0,
    }
    check_names(metrics)


def test_without_levels_there_are_no_level_scores_and_k_can_be_chosen() -> None:
    metrics = score_eval("a", VERDICTS, [None] * 3, pass_ks=[3])
    assert list(metrics) == ["eval/a/avg@4", "eval/a/pass@3"]
    mixed = score_eval("a", VERDICTS, [None, "x", None], pass_ks=[])
    assert mixed == {
        "eval/a/avg@4": 0.5,
        "eval/a/level/unlabelled": 0.75,
        "eval/a/level/x": 0.0,
    }


@pytest.mark.parametrize(
    ("n", "ks"),
    [(1, [1]), (2, [2]), (3, [2, 3]), (32, [2, 4, 8, 16, 32]), (48, [2, 4, 8, 16, 32, 48])],
)
def test_default_ks(n: int, ks: list[int]) -> None:
    metrics = score_eval("a", [[True] * n], [None])
    assert list(metrics) == [f"eval/a/avg@{n}", *(f"eval/a/pass@{k}" for k in ks)]


def test_order_of_samples_and_questions_does_not_matter_and_arrays_work() -> None:
    generator = np.random.default_rng(0)
    verdicts = generator.random((20, 16)) < generator.random((20, 1))
    levels = [str(index % 3) for index in range(20)]
    order = generator.permutation(20)
    shuffled = generator.permuted(verdicts[order], axis=1)
    first = score_eval("a", verdicts.tolist(), levels)
    second = score_eval("a", shuffled, [levels[index] for index in order])
    assert first == second
    assert first["eval/a/avg@16"] == verdicts.mean()


@pytest.mark.parametrize(
    ("correct", "levels", "message"),
    [
        ([], [], "'a' has no verdicts"),
        ([[]], ["1"], "'a' has no verdicts"),
        ([[True, False], [True]], ["1", "1"], "question 1 has 1 verdicts, the first has 2"),
        ([[True]], ["1", "2"], "1 questions and 2 levels"),
        ([[True], [True]], ["a b", "a/b"], "'a b' and 'a/b' would both be named 'a_b'"),
    ],
)
def test_bad_verdicts_are_refused(
    correct: list[list[bool]], levels: list[str | None], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        score_eval("a", correct, levels)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a@2", "-a"])
def test_a_name_that_no_metric_can_hold(name: str) -> None:
    with pytest.raises(ValueError, match="bad name"):
        score_eval(name, VERDICTS, [None] * 3)
