# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Majority vote over extracted answers."""

from __future__ import annotations

import pytest

from megacurl.evaluation.majority import majority_correct, majority_vote


@pytest.mark.parametrize(
    ("extracted", "correct", "winner"),
    [
        (["4", "5", "5"], [True, False, False], 1),
        (["4", "5", "5", "4"], [True, False, False, True], 0),  # a tie: 4 came first
        (["5", "4", "4", "5"], [False, True, True, False], 0),
        ([None, "7", None, None], [False, True, False, False], 1),  # nobody else votes
        (["1/2", "3", "0.5", "3", r"\frac12"], [True, False, True, False, True], 0),
        (["x", "y", "y", "x", "y"], [False] * 5, 1),
        # Equal by value, but require_value refused the sum: the correct 7 has the most votes.
        (["4 + 3", "7", "7"], [False, True, True], 1),
        ([None, None], [False, False], None),
    ],
)
def test_winner(extracted: list[str | None], correct: list[bool], winner: int | None) -> None:
    assert majority_vote(extracted, correct) == winner
    assert majority_correct(extracted, correct) is (winner is not None and correct[winner])


def test_lists_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError):
        majority_vote(["1"], [True, False])
