# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Verdicts of an evaluation as metrics of the schema."""

from __future__ import annotations

import re
from collections.abc import Sequence

from megacurl.config.eval_specs import is_set_name
from megacurl.evaluation.estimators import avg_at_k, pass_at_k


def score_eval(
    set_name: str,
    correct: Sequence[Sequence[bool]],
    levels: Sequence[str | None],
    pass_ks: Sequence[int] | None = None,
) -> dict[str, float]:
    """Score the verdicts of one set as schema metrics.

    Args:
        set_name: name of the set.
        correct: [questions][n] verdicts of n samples of each question.
        levels: [questions] difficulty labels; per-level scores appear when one is not None.
        pass_ks: the k of pass@k; default: powers of two from 2 below n, and n.

    Returns ``eval/<set>/avg@<n>``, ``eval/<set>/pass@<k>``, ``eval/<set>/level/<level>``. Raises
    ValueError naming the set on empty or ragged verdicts or a wrong number of levels.
    """
    return score_counts(set_name, *count_correct(set_name, correct), levels, pass_ks)


def count_correct(set_name: str, correct: Sequence[Sequence[bool]]) -> tuple[list[int], int]:
    """Return the correct samples of each question [questions], and n. Raises as score_eval."""
    n = len(correct[0]) if len(correct) else 0
    if n == 0:
        raise ValueError(f"eval set {set_name!r} has no verdicts to score")
    for index, row in enumerate(correct):
        if len(row) != n:
            raise ValueError(
                f"eval set {set_name!r}: question {index} has {len(row)} verdicts, the first has "
                f"{n}; count a failed sample as False"
            )
    return [sum(map(bool, row)) for row in correct], n


def score_counts(
    set_name: str,
    num_correct: Sequence[int],
    n: int,
    levels: Sequence[str | None],
    pass_ks: Sequence[int] | None = None,
) -> dict[str, float]:
    """Score as :func:`score_eval` does, from ``num_correct`` [questions] of ``n`` samples each."""
    check_set_name(set_name)
    prefix = f"eval/{set_name}"
    metrics = {f"{prefix}/avg@{n}": avg_at_k(num_correct, n)}
    for k in default_pass_ks(n) if pass_ks is None else pass_ks:
        metrics[f"{prefix}/pass@{k}"] = pass_at_k(num_correct, n, k)
    by_level = group_by_level(set_name, num_correct, levels)
    if set(by_level) != {UNLABELLED}:
        for label, counts in by_level.items():
            metrics[f"{prefix}/level/{label}"] = avg_at_k(counts, n)
    return metrics


UNLABELLED = "unlabelled"


def group_by_level(
    set_name: str, num_correct: Sequence[int], levels: Sequence[str | None]
) -> dict[str, list[int]]:
    """Return the counts of each level, levels in order of appearance, None as ``unlabelled``.

    Characters that a metric name cannot hold become ``_``. Raises ValueError on lengths that
    differ, or when two labels would become one.
    """
    if len(levels) != len(num_correct):
        raise ValueError(
            f"eval set {set_name!r} has {len(num_correct)} questions and {len(levels)} levels"
        )
    originals: dict[str, str | None] = {}
    groups: dict[str, list[int]] = {}
    for correct, level in zip(num_correct, levels, strict=True):
        label = UNLABELLED if level is None else re.sub(r"[^\w.+-]", "_", level) or "_"
        if originals.setdefault(label, level) != level:
            raise ValueError(
                f"eval set {set_name!r}: levels {originals[label]!r} and {level!r} would both be "
                f"named {label!r}; rename one"
            )
        groups.setdefault(label, []).append(correct)
    return groups


def check_set_name(name: str) -> None:
    """Raise ValueError unless ``name`` can stand in a metric name."""
    if not is_set_name(name):
        raise ValueError(
            f"bad name {name!r}: use letters, digits, '.', '_', '-', as in aime24=path"
        )


def default_pass_ks(n: int) -> list[int]:
    """Powers of two from 2 below n, and n."""
    powers = [1 << exponent for exponent in range(1, n.bit_length()) if 1 << exponent < n]
    return [*powers, n]
