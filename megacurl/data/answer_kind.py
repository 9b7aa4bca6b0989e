# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A coarse label for a reference answer: tells at a glance which grader a file needs."""

from __future__ import annotations

import re

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("integer", re.compile(r"\+?(?:\d+|\d{1,3}(?:,\d{3})+)")),
    ("negative integer", re.compile(r"-(?:\d+|\d{1,3}(?:,\d{3})+)")),
    (
        "fraction",
        re.compile(r"-?(?:\d+\s*/\s*\d+|\\[dt]?frac\s*(?:\d|\{-?\d+\})\s*(?:\d|\{\d+\}))"),
    ),
    ("decimal", re.compile(r"[+-]?\d*\.\d+")),
    ("letter", re.compile(r"\(?[A-Za-z]\)?|\\text\{\(?[A-Za-z]\)?\}")),
    ("latex", re.compile(r".*[\\^_=$].*", re.DOTALL)),
)

ANSWER_KINDS = (*(name for name, _ in _RULES), "text")


def answer_kind(answer: str) -> str:
    """One of ANSWER_KINDS; "text" is what is left over (words, plain expressions, lists)."""
    for name, pattern in _RULES:
        if pattern.fullmatch(answer):
            return name
    return "text"
