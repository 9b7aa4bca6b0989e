# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Lists, sets, tuples, intervals, unions, matrices: "-2, 1", "\{3, 1/2\}", "(3, 4]", "1 \pm 2"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from megacurl.rewards.latex import depths, enclosed, split_top
from megacurl.rewards.normalise import TEXT_BEGIN, TEXT_END

_CONJUNCTION = re.compile(
    rf"\s*,?\s*(?:{TEXT_BEGIN}\s*,?\s*(?:and|or)\s*{TEXT_END}|(?<=[\s,])(?:and|or)(?=\s))\s*"
)
_UNION = re.compile(r"\\cup(?![a-zA-Z])")
_MATRIX = re.compile(r"\\begin\{([pbvBV]?)matrix\}(.*)\\end\{\1matrix\}", re.DOTALL)
_PLUS_MINUS = re.compile(r"\\pm(?![a-zA-Z])\s*")


@dataclass(frozen=True, slots=True)
class Collection:
    """kind: "list" (order does not matter), "union", the two brackets of a tuple or interval, or
    "matrix" with its delimiters and the length of each row.
    """

    kind: str
    items: tuple[str, ...]

    @property
    def ordered(self) -> bool:
        return self.kind not in ("list", "union")

    @property
    def is_interval(self) -> bool:
        return self.kind[0] in "([" and len(self.items) == 2


def split_collection(text: str) -> Collection | None:
    r"""The parts of normalised text, or None when it is a single value.

    \{1, 2\} and "1, 2" are the same kind: both list values in any order. "a \pm b" lists two.
    """
    text = text.strip()
    if (matrix := _MATRIX.fullmatch(text)) is not None:
        return _split_matrix(*matrix.groups())
    if text.startswith("\\{") and text.endswith("\\}") and enclosed(text[1:-2] + "}"):
        return Collection("list", _expanded(_list_items(text[2:-2])))
    if len(unions := _split_at(_UNION, text)) > 1:
        return Collection("union", tuple(unions))
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and enclosed(text):
        items = split_top(text[1:-1], ",;")
        if len(items) > 1:
            return Collection(text[0] + text[-1], tuple(item.strip() for item in items))
        return None
    items = _list_items(text)
    expanded = _expanded(items)
    return Collection("list", expanded) if len(expanded) > 1 else None


def _split_matrix(style: str, body: str) -> Collection | None:
    if "\\begin" in body:
        return None
    rows = [split_top(row, "&") for row in re.split(r"\\\\|\\cr(?![a-zA-Z])", body)]
    if len(rows[-1]) == 1 and not rows[-1][0].strip():
        rows = rows[:-1]
    # Round and square brackets are one matrix; bars make it a determinant.
    delimiters = "p" if style == "b" else style
    kind = f"matrix {delimiters} {[len(row) for row in rows]}"
    return Collection(kind, tuple(cell.strip() for row in rows for cell in row))


def _list_items(text: str) -> list[str]:
    text = ",".join(_split_at(_CONJUNCTION, text))
    return [item.strip() for item in split_top(text, ",;")]


def _split_at(pattern: re.Pattern[str], text: str) -> list[str]:
    """Split at matches outside all brackets."""
    levels, parts, begin = depths(text), [], 0
    for match in pattern.finditer(text):
        if levels[match.start()] == 0:
            parts.append(text[begin : match.start()])
            begin = match.end()
    return [part.strip() for part in (*parts, text[begin:])]


def _expanded(items: list[str]) -> tuple[str, ...]:
    expanded: list[str] = []
    for item in items:
        around = _split_at(_PLUS_MINUS, item)
        if len(around) == 2:
            expanded += [f"{around[0]}+{around[1]}" if around[0] else around[1]]
            expanded += [f"{around[0]}-{around[1]}"]
        else:
            expanded.append(item)
    return tuple(expanded)
