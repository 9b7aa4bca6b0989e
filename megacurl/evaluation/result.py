# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The stored outcome of evaluating one set with one set of weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from megacurl.evaluation.benchmark import check_set_name, count_correct, score_counts
from megacurl.utils.files import atomic_write_json
from megacurl.utils.names import nearest_hint


@dataclass(frozen=True, slots=True)
class EvalResult:
    """Counts of correct samples by question.

    Attributes:
        set_name: name of the eval set.
        k: samples a question.
        step: RL step of the weights; 0 is before training.
        weights_version: version the engine reported while generating.
        question_ids: [questions] prompt ids.
        num_correct: [questions] correct samples, each 0..k.
        levels: [questions] difficulty labels or None.
    """

    set_name: str
    k: int
    step: int
    weights_version: int
    question_ids: tuple[str, ...]
    num_correct: tuple[int, ...]
    levels: tuple[str | None, ...]

    def __post_init__(self) -> None:
        check_set_name(self.set_name)
        questions = len(self.question_ids)
        if questions == 0 or len(set(self.question_ids)) != questions:
            raise ValueError(f"eval result {self.set_name!r}: question_ids are empty or repeat")
        for name, value in (("num_correct", self.num_correct), ("levels", self.levels)):
            if len(value) != questions:
                raise ValueError(
                    f"eval result {self.set_name!r}: {len(value)} {name} for {questions} questions"
                )
        if self.k < 1 or any(not 0 <= count <= self.k for count in self.num_correct):
            raise ValueError(
                f"eval result {self.set_name!r}: num_correct is not within 0..k={self.k}"
            )

    @classmethod
    def from_verdicts(
        cls,
        set_name: str,
        question_ids: Sequence[str],
        correct: Sequence[Sequence[bool]],
        levels: Sequence[str | None],
        *,
        step: int,
        weights_version: int,
    ) -> Self:
        """Count the verdicts ``correct`` [questions][k]. Raises ValueError as score_eval does."""
        counts, k = count_correct(set_name, correct)
        return cls(
            set_name=set_name,
            k=k,
            step=step,
            weights_version=weights_version,
            question_ids=tuple(question_ids),
            num_correct=tuple(counts),
            levels=tuple(levels),
        )

    @property
    def accuracy(self) -> float:
        """avg@k over all questions."""
        return sum(self.num_correct) / (self.k * len(self.num_correct))

    def metrics(self) -> dict[str, float]:
        """Return the schema metrics of :func:`megacurl.evaluation.benchmark.score_eval`."""
        return score_counts(self.set_name, self.num_correct, self.k, self.levels)

    def save(self, path: str | Path) -> None:
        """Write as JSON, whole or not at all."""
        atomic_write_json(path, asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote. Raises ValueError naming the file and what is wrong."""
        try:
            return cls(**_checked_fields(json.loads(Path(path).read_text(encoding="utf-8"))))
        except ValueError as error:
            raise ValueError(f"{path} is not an eval result: {error}") from error


def _checked_fields(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError("the file does not hold a JSON object")
    known = [field.name for field in fields(EvalResult)]
    for name in raw:
        if name not in known:
            raise ValueError(f"unknown field {name!r}{nearest_hint(name, known)}")
    for name in known:
        if name not in raw:
            raise ValueError(f"field {name!r} is missing")
    kinds = {"set_name": str, "k": int, "step": int, "weights_version": int}
    item_kinds: dict[str, Any] = {"question_ids": str, "num_correct": int, "levels": str | None}
    for name, kind in kinds.items():
        if not isinstance(raw[name], kind):
            raise ValueError(f"field {name!r} is {raw[name]!r}, not of type {kind.__name__}")
    for name, item_kind in item_kinds.items():
        if not isinstance(raw[name], list):
            raise ValueError(f"field {name!r} is {raw[name]!r}, not a list")
        for index, item in enumerate(raw[name]):
            if not isinstance(item, item_kind):
                raise ValueError(f"field {name!r}[{index}] is {item!r}, of the wrong type")
    return {name: tuple(raw[name]) if name in item_kinds else raw[name] for name in known}
