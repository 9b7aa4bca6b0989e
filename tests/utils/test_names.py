# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Hints for misspelt names."""

from __future__ import annotations

from megacurl.utils.names import nearest, nearest_hint

NAMES = ("train_batch_size", "micro_batch_size", "lr", "algorithm")


def test_a_typo_finds_its_name() -> None:
    assert nearest("train_batchsize", NAMES) == "train_batch_size"
    assert nearest_hint("algoritm", NAMES) == " (did you mean 'algorithm'?)"


def test_case_and_dashes_do_not_hide_a_match_and_the_spelling_is_kept() -> None:
    assert nearest("MICRO-BATCH-SIZE", NAMES) == "micro_batch_size"
    assert nearest("micro_batch_size", ["Micro-Batch-Size"]) == "Micro-Batch-Size"


def test_nothing_close_gives_no_hint() -> None:
    assert nearest("zzz", NAMES) is None
    assert nearest_hint("zzz", NAMES) == ""
    assert nearest_hint("anything", []) == ""


def test_order_of_candidates_does_not_matter() -> None:
    assert nearest("aab", ["aac", "aad"]) == nearest("aab", ["aad", "aac"])
