# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Question sets to evaluate on, how a run names them, and their scores as metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from megacurl.evaluation.estimators import avg_at_k, pass_at_k

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ROW_RANGE = re.compile(r"@\[[-\d:]*\]$")


class PromptLike(Protocol):
    """What an evaluation reads of a prompt; ``megacurl.data.Prompt`` has it."""

    @property
    def id(self) -> str:
        """Unique name of the question."""

    @property
    def level(self) -> str | None:
        """Difficulty label, or None."""


PromptT = TypeVar("PromptT", bound=PromptLike)


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """Name and file of a question set, before it is read."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class EvalSet(Generic[PromptT]):
    """A named question set. Raises ValueError when empty or when a prompt id repeats."""

    name: str
    prompts: Sequence[PromptT]

    def __post_init__(self) -> None:
        check_set_name(self.name)
        if not self.prompts:
            raise ValueError(f"eval set {self.name!r} has no prompts; check its file")
        prompt_id, count = Counter(prompt.id for prompt in self.prompts).most_common(1)[0]
        if count > 1:
            raise ValueError(
                f"eval set {self.name!r} has prompt id {prompt_id!r} {count} times; keep one of "
                "each and raise the number of samples instead"
            )

    @property
    def ids(self) -> tuple[str, ...]:
        """Prompt ids, in order."""
        return tuple(prompt.id for prompt in self.prompts)

    @property
    def levels(self) -> tuple[str | None, ...]:
        """Level of each prompt, in order."""
        return tuple(prompt.level for prompt in self.prompts)


def parse_eval_specs(specs: Sequence[str]) -> list[EvalSpec]:
    """Parse ``name=path`` entries; without ``name=`` the name is the file's stem.

    Raises ValueError on an empty or repeated name or one with odd characters (it becomes part of
    a metric name), FileNotFoundError when a path is not a file. A path may end in a row range, as
    in ``math500.jsonl@[0:50]``.
    """
    parsed: list[EvalSpec] = []
    for spec in specs:
        name, equals, path_text = spec.partition("=")
        # A path may hold "=" itself (runs/lr=1e-6/x.jsonl): a name never holds a slash.
        if not equals or "/" in name:
            path_text, name = spec, Path(spec).stem
        check_set_name(name, where=f" in eval set {spec!r}")
        path = Path(path_text)
        if not path.is_file() and not Path(_ROW_RANGE.sub("", path_text)).is_file():
            raise FileNotFoundError(f"eval set {spec!r}: no file at {path_text!r}")
        if any(name == other.name for other in parsed):
            raise ValueError(f"eval set {spec!r}: name {name!r} is taken; write other_name=path")
        parsed.append(EvalSpec(name, path))
    return parsed


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


def check_set_name(name: str, where: str = "") -> None:
    """Raise ValueError unless ``name`` can stand in a metric name."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            f"bad name {name!r}{where}: use letters, digits, '.', '_', '-', as in aime24=path"
        )


def default_pass_ks(n: int) -> list[int]:
    """Powers of two from 2 below n, and n."""
    powers = [1 << exponent for exponent in range(1, n.bit_length()) if 1 << exponent < n]
    return [*powers, n]
