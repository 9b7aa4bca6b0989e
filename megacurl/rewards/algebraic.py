# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Which answers are algebra, and in which spelling a computer algebra system gets them.

The gate in front of the worker processes: only short expressions of known functions, with small
powers and factorials. Text, numbers, single letters, relations, sums and integrals stay outside.
"""

from __future__ import annotations

import re

from megacurl.rewards.latex import depths, group_end
from megacurl.rewards.normalise import TEXT_BEGIN, TEXT_END
from megacurl.rewards.number import parse_number

MAX_CHARACTERS = 300
_MAX_DEPTH = 20
# Of a number or a variable, and of an expression in brackets, which may have to be expanded.
_MAX_EXPONENT, _MAX_EXPANDED = 1000, 50
_MAX_FACTORIAL = 300

_FUNCTIONS = frozenset((
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "sinh",
    "cosh", "tanh", "log", "ln", "lg", "exp",
))  # fmt: skip
_COMMANDS = _FUNCTIONS | frozenset((
    "frac", "sqrt", "binom", "pi", "lfloor", "rfloor", "lceil", "rceil", "alpha", "beta", "gamma",
    "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "vartheta", "kappa", "lambda", "mu",
    "nu", "xi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Sigma", "Phi", "Psi", "Omega",
))  # fmt: skip
_COMMAND = re.compile(r"\\([a-zA-Z]+|.)", re.DOTALL)
_NOT_MATHS = re.compile(r"[^0-9A-Za-z{}()\[\]^_+*/!.| -]")
_WORD = re.compile(rf"{TEXT_BEGIN}\s*([A-Za-z]*)\s*{TEXT_END}")
_BARE_FUNCTION = re.compile(
    rf"(?<![A-Za-z\\])({'|'.join(sorted(_FUNCTIONS, key=len, reverse=True))})(?![A-Za-z])"
)
_LONG_WORD = re.compile(r"[A-Za-z]{4,}")
_BASED = re.compile(r"[0-9]\s*_")
# "1/2x" and "1/2(3)" have two readings; a sign behind ^ without braces has none.
_AMBIGUOUS = re.compile(
    r"/\s*[0-9.]+\s*[A-Za-z(\\\[]|[0-9]\s+[0-9]|\^\s*[+-]|[+*/^-]\s*[+*/^]|!\s*!"
)
_MIXED = re.compile(r"(?<![\w.}])([0-9]+)\s*\\frac\{([0-9]+)\}\{([0-9]+)\}")
_DECIMAL = re.compile(r"([0-9]*)\.([0-9]+)")
_LOG_BASE = re.compile(r"(\\log\s*_)\s*([0-9]+)\s")
_LETTER = re.compile(r"\\(?!frac|sqrt|binom)[a-zA-Z]+|(?<!\\)(?<![A-Za-z\\])[A-Za-z]")


def to_algebra(text: str) -> str | None:
    """LaTeX of normalised text that needs algebra to be compared; None for everything else."""
    text = _BARE_FUNCTION.sub(r"\\\1", _WORD.sub(_short_word, text).strip())
    text = _LOG_BASE.sub(r"\1{\2}", text)
    if not 1 < len(text) <= MAX_CHARACTERS or _is_plain(text):
        return None
    if any(name not in _COMMANDS for name in _COMMAND.findall(text)):
        return None
    letters = _COMMAND.sub(" ", text)
    if _NOT_MATHS.search(letters) or _LONG_WORD.search(letters):
        return None
    levels = depths(text + " ")
    if levels[-1] != 0 or min(levels) < 0 or max(levels) > _MAX_DEPTH:
        return None
    if _AMBIGUOUS.search(text) or not _is_small(text):
        return None
    if any(int(above) >= int(below) for _, above, below in _MIXED.findall(text)):
        return None
    return _DECIMAL.sub(_as_fraction, _MIXED.sub(r"(\1+\\frac{\2}{\3})", text))


def _short_word(match: re.Match[str]) -> str:
    r"""\mathrm{e} and \mathrm{arctan} are mathematics; other words keep their marks."""
    word = match[1]
    return f" {word} " if len(word) == 1 or word in _FUNCTIONS else match[0]


def _is_plain(text: str) -> bool:
    return text.isalpha() or _BASED.search(text) is not None or parse_number(text) is not None


def _as_fraction(match: re.Match[str]) -> str:
    whole, decimals = match.groups()
    return rf"\frac{{{whole}{decimals}}}{{1{'0' * len(decimals)}}}"


def _is_small(text: str) -> bool:
    """False when evaluating a power, factorial or binomial could run away."""
    for index, character in enumerate(text):
        expands = text[:index].rstrip().endswith((")", "}", "]"))
        limit = _MAX_EXPANDED if expands else _MAX_EXPONENT
        if character == "^" and not _small_exponent(text, index + 1, limit):
            return False
        if character == "!" and not _small_factorial(text[:index].rstrip()):
            return False
    return all(
        _LETTER.search(text[match.end() : _arguments_end(text, match.end())])
        for match in re.finditer(r"\\binom", text)
    )


def _small_exponent(text: str, begin: int, limit: int) -> bool:
    while begin < len(text) and text[begin] == " ":
        begin += 1
    end = group_end(text, begin) if text[begin : begin + 1] in ("{", "(") else begin + 1
    exponent = text[begin:end]
    # 2^3^2 has two readings, and a tower of numbers is out of reach. e^{x^2} is neither.
    if (
        end <= begin
        or text.startswith(("\\frac", "\\sqrt"), begin)
        or text[end:].lstrip().startswith("^")
    ):
        return False
    if "^" in exponent and not _LETTER.search(exponent):
        return False
    return all(
        len(digits) <= 4 and int(digits) <= limit for digits in re.findall(r"[0-9]+", exponent)
    )


def _small_factorial(before: str) -> bool:
    if (digits := re.search(r"[0-9]+$", before)) is not None:
        return len(digits[0]) <= 3 and int(digits[0]) <= _MAX_FACTORIAL
    if not before.endswith((")", "}")):
        return before[-1:].isalpha()
    levels = depths(before)
    begin = max((i for i, depth in enumerate(levels[:-1]) if depth == levels[-1]), default=0)
    return _LETTER.search(before[begin:]) is not None


def _arguments_end(text: str, begin: int) -> int:
    middle = group_end(text, begin)
    return group_end(text, middle) if middle > 0 else len(text)
