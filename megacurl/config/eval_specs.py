# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""How training and ``megacurl eval`` name benchmark files: ``NAME=FILE`` or ``FILE``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from megacurl.config.row_range import file_problems

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """Name and file of a question set; ``path`` may end in a row range."""

    name: str
    path: str


def parse_eval_spec(spec: str) -> EvalSpec:
    """``aime24=data/aime.jsonl``; without a name it is the file's stem.

    Nothing is checked; see :func:`eval_spec_problems`.
    """
    name, equals, path = spec.partition("=")
    # A path may hold "=" itself (runs/lr=1e-6/x.jsonl): a name never holds a slash.
    if not equals or "/" in name:
        file, path = Path(spec).name.partition("@[")[0], spec
        name = Path(file).stem
    return EvalSpec(name, path)


def is_set_name(name: str) -> bool:
    """Whether a set of this name can stand in the name of a metric."""
    return _NAME.fullmatch(name) is not None


def eval_spec_problems(specs: Sequence[str], flag: str) -> Iterator[str]:
    """Files that are not there, row ranges that are none, names that are odd or taken."""
    taken: dict[str, str] = {}
    for spec in specs:
        parsed = parse_eval_spec(spec)
        name = parsed.name
        yield from (f"{flag} {spec}: {problem}" for problem in file_problems(parsed.path))
        if not is_set_name(name):
            yield (
                f"{flag} {spec}: {name!r} cannot name metrics; write NAME=PATH with letters, "
                "digits, '.', '_' and '-'"
            )
        elif name in taken:
            yield (
                f"{flag} {spec} and {taken[name]} are both called {name!r}; give one another name "
                "as NAME=PATH"
            )
        taken[name] = spec
