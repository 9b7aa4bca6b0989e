# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Majority vote over the extracted answers of a question."""

from __future__ import annotations

from collections.abc import Sequence

from megacurl.rewards.exact import answers_equal


def majority_vote(extracted: Sequence[str | None], correct: Sequence[bool]) -> int | None:
    """Index of the first response with the most frequent answer; None if nobody answered.

    Self-consistency (Wang et al. 2023, section 2). A response without an answer does not vote. Two
    answers are one when they are the same text, or are equal by the math verifier's rules and got
    the same verdict (so the winner's verdict is that of all its voters). Among equally frequent
    answers the one that came first wins.

    Args:
        extracted: [k] final answers in the order of the samples, None where there is none.
        correct: [k] verdicts.
    """
    first: list[int] = []
    votes: list[int] = []
    known: dict[tuple[str, bool], int] = {}
    for index, (answer, verdict) in enumerate(zip(extracted, correct, strict=True)):
        if answer is None:
            continue
        key = (answer, verdict)
        if key not in known:
            known[key] = next(
                (
                    group
                    for group, other in enumerate(first)
                    if correct[other] == verdict and _equal(answer, extracted[other])
                ),
                len(first),
            )
            if known[key] == len(first):
                first.append(index)
                votes.append(0)
        votes[known[key]] += 1
    return first[votes.index(max(votes))] if votes else None


def majority_correct(extracted: Sequence[str | None], correct: Sequence[bool]) -> bool:
    """Whether the most frequent answer is right; False if nobody answered."""
    winner = majority_vote(extracted, correct)
    return winner is not None and correct[winner]


def _equal(answer: str, other: str | None) -> bool:
    return other is not None and answers_equal(answer, other)
