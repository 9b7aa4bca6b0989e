# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which benchmark questions are also in a public training set.

``data/dapo_eval_overlap.json`` lists, by benchmark, the ids of questions that DAPO-Math-17k holds
nearly word for word (``near_identical``) or with another wording or other names (``rewritten``).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

TRAINING_SET = "DAPO-Math-17k"


@dataclass(frozen=True)
class Overlap:
    """Questions of an evaluated set that are in the training set.

    Attributes:
        near_identical, rewritten: how many of each kind.
        questions: how many questions these were counted in.
        ids: which of the evaluated questions they are; empty when only the name of the set is
            known, and then the counts are those of the whole benchmark.
    """

    near_identical: int
    rewritten: int
    questions: int
    ids: frozenset[str]

    def note(self, set_name: str) -> str:
        """One line for the user."""
        seen = self.near_identical + self.rewritten
        whose = f"the {self.questions} questions" if self.ids else f"its {self.questions} questions"
        tail = "" if self.ids else " (its ids do not tell which)"
        return (
            f"note: {set_name}: {seen} of {whose} are also in {TRAINING_SET}, "
            f"{self.near_identical} nearly word for word and {self.rewritten} rewritten{tail}; a "
            "model trained on that set has seen them"
        )


def find_overlap(set_name: str, ids: Collection[str]) -> Overlap | None:
    """The known overlap of a set, found by its question ids, else by its name; None if none."""
    evaluated = frozenset(ids)
    near: set[str] = set()
    rewritten: set[str] = set()
    for benchmark in _table().values():
        near |= evaluated.intersection(benchmark["near_identical"])
        rewritten |= evaluated.intersection(benchmark["rewritten"])
    if near or rewritten:
        return Overlap(len(near), len(rewritten), len(evaluated), frozenset(near | rewritten))
    return _by_name(set_name, evaluated)


def _by_name(set_name: str, evaluated: Collection[str]) -> Overlap | None:
    folded = _fold(set_name)
    for name, benchmark in _table().items():
        counts = len(benchmark["near_identical"]), len(benchmark["rewritten"])
        if folded != _fold(name.split("_")[0]) or not any(counts):
            continue
        if any(question.startswith(_prefix(benchmark)) for question in evaluated):
            return None  # the list's own ids, in a slice without such questions
        return Overlap(*counts, int(benchmark["n"]), frozenset())
    return None


def _prefix(benchmark: dict[str, Any]) -> str:
    listed = [*benchmark["near_identical"], *benchmark["rewritten"]]
    return str(listed[0]).split("-")[0] + "-"


def _fold(name: str) -> str:
    """``AMC-2023`` -> ``amc23``."""
    plain = "".join(char for char in name.casefold() if char.isalnum())
    return plain.replace("20", "", 1) if plain[-4:-2] == "20" else plain


@cache
def _table() -> dict[str, dict[str, Any]]:
    file = resources.files("megacurl.evaluation") / "data" / "dapo_eval_overlap.json"
    table: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return table
