# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Inequalities in one variable as intervals: "x \ge 2" is [2, \infty), "1 < x \le 3" is (1, 3]."""

from __future__ import annotations

import re

from megacurl.rewards.latex import split_top

_SIGN = re.compile(r"\\(?:le|ge)(?![a-zA-Z])|[<>]")
_OTHER = re.compile(r"[=≠]|\\(?:ne|approx|equiv|sim|in|cup|pm|mp)(?![a-zA-Z])")
_NAME = re.compile(r"[A-Za-z]|\\(?!infty)[a-zA-Z]+")


def to_interval(text: str) -> tuple[str, str] | None:
    """(variable, interval) of normalised text, or None when it is no such inequality."""
    signs = _SIGN.findall(text)
    if not 1 <= len(signs) <= 2 or _OTHER.search(text) or len(split_top(text, ",;")) > 1:
        return None
    sides = [side.strip() for side in _SIGN.split(text)]
    if not all(sides):
        return None
    rising = [sign in ("<", "\\le") for sign in signs]
    closed = [sign.startswith("\\") for sign in signs]
    if len(signs) == 2:
        return _between(sides, rising, closed)
    if _NAME.fullmatch(sides[0]):
        variable, bound, below = sides[0], sides[1], rising[0]
    elif _NAME.fullmatch(sides[1]):
        variable, bound, below = sides[1], sides[0], not rising[0]
    else:
        return None
    if below:
        return variable, f"(-\\infty,{bound}" + ("]" if closed[0] else ")")
    return variable, ("[" if closed[0] else "(") + f"{bound},\\infty)"


def _between(sides: list[str], rising: list[bool], closed: list[bool]) -> tuple[str, str] | None:
    low, variable, high = sides
    if rising[0] != rising[1] or not _NAME.fullmatch(variable):
        return None
    if not rising[0]:
        low, high, closed = high, low, closed[::-1]
    return variable, f"{'[' if closed[0] else '('}{low},{high}{']' if closed[1] else ')'}"
