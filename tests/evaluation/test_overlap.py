# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Known overlap of benchmarks with a training set."""

from __future__ import annotations

from megacurl.evaluation.overlap import find_overlap


def test_amc23_by_its_ids_whatever_the_set_is_called() -> None:
    # The ids of the public file: 40 numbers between 0 and 48.
    ids = [f"amc23-{number}" for number in range(49)]
    overlap = find_overlap("mine", ids)
    assert overlap is not None
    assert (overlap.near_identical, overlap.rewritten, overlap.questions) == (9, 13, 49)
    assert len(overlap.ids) == 22 and "amc23-3" in overlap.ids and "amc23-0" not in overlap.ids
    assert overlap.note("mine").startswith(
        "note: mine: 22 of the 49 questions are also in DAPO-Math-17k, 9 nearly word for word"
    )


def test_a_slice_counts_its_own_questions() -> None:
    overlap = find_overlap("amc23", ["amc23-0", "amc23-3", "amc23-7"])
    assert overlap is not None
    assert (overlap.near_identical, overlap.rewritten, overlap.questions) == (1, 1, 3)
    assert find_overlap("amc23", ["amc23-0", "amc23-1"]) is None


def test_by_name_when_the_ids_are_other_ones() -> None:
    for name in ("amc23", "AMC-2023", "amc_23"):
        overlap = find_overlap(name, ["q1", "q2"])
        assert overlap is not None
        assert (overlap.questions, overlap.ids) == (40, frozenset())
        assert "22 of its 40 questions" in overlap.note(name)
        assert "its ids do not tell which" in overlap.note(name)


def test_clean_and_unknown_sets() -> None:
    for name in ("aime24", "aime2025", "gsm8k", "mine", "20"):
        assert find_overlap(name, ["q1"]) is None
