# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Accuracy by difficulty before and after training, as a table."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from megacurl.evaluation.benchmark import UNLABELLED
from megacurl.evaluation.result import EvalResult

_HEADER = ("level", "questions", "before", "after", "change")
_TOTAL = "all"


@dataclass(frozen=True, slots=True)
class LevelRow:
    """One line of the table: mean accuracies on the questions of a level."""

    level: str
    questions: int
    before: float
    after: float

    @property
    def change(self) -> float:
        """``after - before``."""
        return self.after - self.before


def level_rows(before: EvalResult, after: EvalResult) -> list[LevelRow]:
    """Compare two results by level, the row ``all`` last.

    Graded labels (1, 2, ... or "Level 1", ...) come in order of their number, others from easy to
    hard by ``before``. Raises ValueError unless both hold the same questions with the same levels
    of the same set; their order and k may differ.
    """
    _check_comparable(before, after)
    before_share, after_share = _shares(before), _shares(after)
    by_level: dict[str, list[tuple[float, float]]] = {}
    everything: list[tuple[float, float]] = []
    for question, level in zip(before.question_ids, before.levels, strict=True):
        pair = (before_share[question], after_share[question])
        everything.append(pair)
        by_level.setdefault(UNLABELLED if level is None else level, []).append(pair)
    rows = [_row(level, pairs) for level, pairs in by_level.items()]
    numbers = _grades([row.level for row in rows])
    if numbers is not None:
        rows.sort(key=lambda row: numbers[row.level])
    else:
        rows.sort(key=lambda row: (-row.before, row.level))
    total = _row(_TOTAL, everything)
    return [*rows, total] if set(by_level) != {UNLABELLED} else [total]


def before_after_table(before: EvalResult, after: EvalResult, *, color: bool = False) -> str:
    """Return the table with a title line: aligned plain text, or a rich table with ANSI colors.

    Raises ValueError as :func:`level_rows` does.
    """
    rows = level_rows(before, after)
    title = _title(before, after)
    return _rich_table(title, rows) if color else _plain_table(title, rows)


def print_before_after(before: EvalResult, after: EvalResult, stream: TextIO | None = None) -> None:
    """Print the table to ``stream`` (stdout), in color when it is a terminal."""
    file = sys.stdout if stream is None else stream
    print(before_after_table(before, after, color=file.isatty()), file=file)


def _check_comparable(before: EvalResult, after: EvalResult) -> None:
    if before.set_name != after.set_name:
        raise ValueError(f"cannot compare set {before.set_name!r} with {after.set_name!r}")
    levels_before = dict(zip(before.question_ids, before.levels, strict=True))
    levels_after = dict(zip(after.question_ids, after.levels, strict=True))
    if levels_before == levels_after:
        return
    absent = "(absent)"
    question = min(
        question
        for question in levels_before.keys() | levels_after.keys()
        if levels_before.get(question, absent) != levels_after.get(question, absent)
    )
    raise ValueError(
        f"set {before.set_name!r} changed between the results: question {question!r} has level "
        f"{levels_before.get(question, absent)!r} before, "
        f"{levels_after.get(question, absent)!r} after; evaluate both on the same file"
    )


def _shares(result: EvalResult) -> dict[str, float]:
    return {
        question: correct / result.k
        for question, correct in zip(result.question_ids, result.num_correct, strict=True)
    }


def _row(level: str, pairs: Sequence[tuple[float, float]]) -> LevelRow:
    before = sum(pair[0] for pair in pairs) / len(pairs)
    after = sum(pair[1] for pair in pairs) / len(pairs)
    return LevelRow(level, len(pairs), before, after)


def _grades(levels: Sequence[str]) -> dict[str, int] | None:
    """The number in each label, when the labels differ in nothing else."""
    matches = [re.fullmatch(r"(\D*)(\d+)", level) for level in levels]
    found = [match for match in matches if match is not None]
    if len(found) != len(levels) or len({match[1] for match in found}) != 1:
        return None
    return {match[0]: int(match[2]) for match in found}


def _title(before: EvalResult, after: EvalResult) -> str:
    score = f"avg@{before.k}" if before.k == after.k else f"avg@{before.k} -> avg@{after.k}"
    return (
        f"{before.set_name}, {score}: step {before.step} -> {after.step}, "
        f"weights version {before.weights_version} -> {after.weights_version}"
    )


def _cells(row: LevelRow) -> tuple[str, str, str, str, str]:
    return (
        row.level,
        str(row.questions),
        f"{row.before:.3f}",
        f"{row.after:.3f}",
        f"{row.change:+.3f}",
    )


def _plain_table(title: str, rows: Sequence[LevelRow]) -> str:
    lines = [_HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
    text = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]
    return "\n".join([title, *text])


def _rich_table(title: str, rows: Sequence[LevelRow]) -> str:
    table = Table(title=Text(title), title_justify="left")
    for column in _HEADER:
        table.add_column(column, justify="left" if column == "level" else "right")
    for row in rows:
        if row.level == _TOTAL and len(rows) > 1:
            table.add_section()
        style = "green" if row.change > 0 else "red" if row.change < 0 else ""
        # Text, not str: rich would read "[...]" in a label as markup.
        *plain, change = (Text(cell) for cell in _cells(row))
        change.stylize(style)
        table.add_row(*plain, change)
    width = shutil.get_terminal_size().columns
    console = Console(file=io.StringIO(), force_terminal=True, width=max(width, 40))
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip("\n")
