# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""A comparable form of a non-numeric expression: fractions with a slash, terms in any order.

Only rewritings that keep the value under every reading are made; algebra is not done here.
"""

from __future__ import annotations

import re

from megacurl.rewards.latex import group_end, peel, split_top
from megacurl.rewards.normalise import tight

_ATOM = re.compile(r"[0-9]+(?:\.[0-9]+)?|[a-zA-Z]|\\[a-zA-Z]+|\\sqrt\{[^{}]*\}")
_RELATION = re.compile(r"[=<>:&]|\\(?:le|ge|ne|approx|equiv|pm|mp|in|cup|cap|begin)(?![a-zA-Z])")
# A product sign may go where a number and a symbol, or two brackets, are left side by side.
_PRODUCT = re.compile(r"(?<=[0-9A-Za-z)}])\*(?=[A-Za-z\\(])|(?<=[A-Za-z)}])\*(?=[A-Za-z\\(])")
_MIXED = re.compile(r"(?<![\w.}])([0-9]+)\\frac\{([0-9]+)\}\{([0-9]+)\}")
_SINGLE_GROUP = re.compile(r"([\^_])\{([A-Za-z0-9])\}(?![0-9])")
# A sign that belongs to an exponent, an index or a factor does not begin a term.
_INNER_SIGN = re.compile(r"[\^_*/][+-]")

Terms = tuple[tuple[str, str], ...]


def canonical_terms(text: str) -> Terms:
    """Sorted (sign, term) pairs of a sum; a relation is one term."""
    plain = _PRODUCT.sub("", _slashes(_MIXED.sub(r"(\1+\\frac{\2}{\3})", tight(text))))
    plain = _SINGLE_GROUP.sub(r"\1\2", plain)
    if _RELATION.search(plain) or _INNER_SIGN.search(plain):
        return (("+", plain),)
    return tuple(sorted(_terms(plain)))


def _terms(text: str) -> list[tuple[str, str]]:
    """Top-level terms with the sign in front of each; a leading sign opens the first term."""
    terms: list[tuple[str, str]] = []
    position = 0
    for term in split_top(text, "+-"):
        sign = text[position - 1] if position else "+"
        if term or position:
            terms.append((sign, peel(term)))
        position += len(term) + 1
    return terms


def _slashes(text: str) -> str:
    r"""\frac{a}{b} as a/b, with brackets wherever leaving them out could change the reading."""
    while (start := text.rfind("\\frac{")) >= 0:
        middle = group_end(text, start + 5)
        end = group_end(text, middle) if middle > 0 and text.startswith("{", middle) else -1
        if end < 0:
            return text
        above, below = peel(text[start + 6 : middle - 1]), peel(text[middle + 1 : end - 1])
        quotient = f"{_bracketed(above, '+-', 1)}/{_denominator(below)}"
        before, after = text[start - 1 : start], text[end : end + 1]
        if (before and before not in "+-(,[{=") or (after and after not in "+-),]}="):
            quotient = f"({quotient})"
        text = text[:start] + quotient + text[end:]
    return text


def _bracketed(text: str, signs: str, begin: int) -> str:
    return f"({text})" if any(sign in text[begin:] for sign in signs) else text


def _denominator(text: str) -> str:
    return text if _ATOM.fullmatch(text) else f"({text})"
