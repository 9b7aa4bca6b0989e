# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Small scanners over LaTeX-like text: matching brackets, top-level splits, command arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())
_ARGUMENTS = {"\\frac": 2, "\\binom": 2, "\\sqrt": 1}
_COMMAND = re.compile(r"\\(?:frac|binom|sqrt)(?![a-zA-Z])")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|.", re.DOTALL)


def depths(text: str) -> list[int]:
    r"""Bracket depth in front of each character; "(1,2]" matches, and \{ \} count as brackets."""
    depth, result = 0, []
    for character in text:
        if character in _CLOSE:
            depth -= 1
        result.append(depth)
        if character in _OPEN:
            depth += 1
    return result


def split_top(text: str, separators: Iterable[str]) -> list[str]:
    """Parts of `text` between single-character separators that are outside all brackets."""
    wanted = frozenset(separators)
    parts, begin = [], 0
    for index, (character, depth) in enumerate(zip(text, depths(text), strict=True)):
        if character in wanted and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    parts.append(text[begin:])
    return parts


def enclosed(text: str) -> bool:
    """True when the first character is a bracket that the last character closes."""
    if len(text) < 2 or text[0] not in _OPEN or text[-1] not in _CLOSE:
        return False
    return all(depth > 0 for depth in depths(text)[1:-1])


def peel(text: str) -> str:
    """Remove blanks and round brackets around the whole text, unless they hold a list."""
    text = text.strip()
    begin, end = 0, len(text)
    closes = _closing(text) if text.startswith("(") else {}
    while begin < end and text[begin] == "(" and closes.get(begin) == end - 1:
        inner_begin, inner_end = begin + 1, end - 1
        while inner_begin < inner_end and text[inner_begin].isspace():
            inner_begin += 1
        while inner_end > inner_begin and text[inner_end - 1].isspace():
            inner_end -= 1
        begin, end = inner_begin, inner_end
    inner = text[begin:end]
    if begin and len(split_top(inner, ",")) > 1:
        return f"({inner})"
    return inner


def _closing(text: str) -> dict[int, int]:
    stack: list[int] = []
    closes: dict[int, int] = {}
    for index, character in enumerate(text):
        if character in _OPEN:
            stack.append(index)
        elif character in _CLOSE and stack:
            closes[stack.pop()] = index
    return closes


def group_end(text: str, start: int) -> int:
    """Index just behind the bracket that closes the one at `start`; -1 if nothing closes it."""
    depth = 0
    for index in range(start, len(text)):
        if text[index] in _OPEN:
            depth += 1
        elif text[index] in _CLOSE:
            depth -= 1
            if depth == 0:
                return index + 1
    return -1


def brace_arguments(text: str) -> str:
    r"""Write every argument of \frac, \sqrt and \binom in braces: \frac12, \frac{270}7, \sqrt 5.

    A plain-text \sqrt(3) gets braces too; a root index \sqrt[3]{4} stays. Works from right to
    left, so that arguments are complete when the command in front of them is looked at.
    """
    for match in reversed(list(_COMMAND.finditer(text))):
        head, position, pieces = match.group(), match.end(), []
        if head == "\\sqrt" and text.startswith("[", position):
            end = group_end(text, position)
            if end < 0:
                continue
            head, position = text[match.start() : end], end
        for _ in range(_ARGUMENTS[match.group()]):
            argument, position = _argument(text, position, match.group() == "\\sqrt")
            pieces.append("{" + argument + "}")
        text = text[: match.start()] + head + "".join(pieces) + text[position:]
    return text


def _argument(text: str, position: int, is_root: bool) -> tuple[str, int]:
    while position < len(text) and text[position].isspace():
        position += 1
    opener = text[position : position + 1]
    if opener == "{" or (opener == "(" and is_root):
        end = group_end(text, position)
        if end > 0:
            return text[position + 1 : end - 1].strip(), end
    if is_root and (digits := re.compile(r"[0-9]+").match(text, position)):
        # TeX would take one digit, but nobody who writes \sqrt12 means 2\sqrt{1}.
        return digits.group(), digits.end()
    token = _TOKEN.match(text, position)
    if token is None or token.group() in _CLOSE:
        return "", position
    end = token.end()
    if _COMMAND.fullmatch(token.group()):
        # The inner command was braced before: its groups belong to the argument.
        while text.startswith(("{", "["), end) and (close := group_end(text, end)) > 0:
            end = close
    return text[position:end], end
