# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The tables of tiny_table.py, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean, stdev

from tiny_plan import BASE, Record, Score

LEVELS = ("add2", "sum3", "sum4", "word3")


def tables(records: Sequence[Record], names: Sequence[str], budgets: Sequence[int]) -> str:
    """One table a budget; systems without a record are left out."""
    parts = []
    for index, budget in enumerate(budgets):
        rows = {BASE.name: _scores(records, BASE.name, 0)}
        rows |= {name: _scores(records, name, index) for name in names}
        parts.append(f"After {budget:,} responses:\n\n{_table(rows)}")
    return "\n\n".join(parts)


def _scores(records: Sequence[Record], name: str, index: int) -> list[Score]:
    return [record.scores[index] for record in records if record.name == name]


def _table(rows: dict[str, list[Score]]) -> str:
    head = [
        *("system", "all", *LEVELS),
        *("steps", "responses", "thousand tokens", "CPU seconds", "seeds"),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for name, scores in rows.items():
        if scores:
            lines.append("| " + " | ".join(_cells(name, scores)) + " |")
    return "\n".join(lines)


def _cells(name: str, scores: Sequence[Score]) -> list[str]:
    def average(number: Callable[[Score], float]) -> float:
        return mean(number(score) for score in scores)

    return [
        name,
        _spread([score.accuracy() for score in scores]),
        *(_spread([score.accuracy(level) for score in scores]) for level in LEVELS),
        f"{average(lambda s: s.steps):.0f}",
        f"{average(lambda s: s.responses):,.0f}",
        f"{average(lambda s: s.tokens) / 1e3:.0f}",
        f"{average(lambda s: s.seconds):.0f}",
        f"{len(scores)}",
    ]


def _spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over the seeds."""
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{spread}"
