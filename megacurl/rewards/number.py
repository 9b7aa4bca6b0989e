# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Exact value of a numeric expression: "2^{10}", "\frac{270}{7}", "1.5*10^{-3}", "1\frac{3}{4}".

A small recursive-descent evaluator over Fraction. It knows nothing but numbers, so there is
nothing to inject, and every intermediate result is capped, so no input makes it slow.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

MAX_CHARACTERS = 400
_MAX_BITS = 4096
_MAX_DEPTH = 40
_MAX_FACTORIAL = 300
_MAX_BINOMIAL = 1000

_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3}(?![0-9]))?"
_TOKEN = re.compile(rf"\s*({_NUMBER}|\\(?:frac|sqrt|binom)(?![a-zA-Z])|[-+*/^!(){{}}])")
_GROUPED = re.compile(r"([+-]?\s*)([0-9]{1,3}(?:(?:,[0-9]{3})+|(?: [0-9]{3})+))(\.[0-9]+)?")
_MIXED = re.compile(r"([+-]?)\s*([0-9]+)\s+([0-9]+)\s*/\s*([0-9]+)")


class _NotNumeric(Exception):
    """The text is not a number, or its value is beyond the caps."""


def parse_number(text: str) -> Fraction | None:
    """Exact value of normalised text, or None when it is no plain number (or too large to hold).

    Understands digits with thousands separators, decimals, e-notation, + - * /, powers with whole
    exponents, factorials, fractions and mixed numbers, roots of perfect squares, binomials.
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARACTERS:
        return None
    if (grouped := _GROUPED.fullmatch(text)) is not None:
        sign, digits, decimals = grouped.groups(default="")
        text = sign + digits.replace(",", "").replace(" ", "") + decimals
    try:
        if (mixed := _MIXED.fullmatch(text)) is not None:
            sign, whole, above, below = mixed.groups()
            return _mixed(Fraction(sign + "1"), _literal(whole), _literal(above), _literal(below))
        return _Parser(text).value()
    except (_NotNumeric, ZeroDivisionError):
        return None


def _literal(token: str) -> Fraction:
    return _capped(Fraction(token))


def _capped(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise _NotNumeric
    return value


def _mixed(sign: Fraction, whole: Fraction, above: Fraction, below: Fraction) -> Fraction:
    # "2\frac{5}{3}" could be a product; only a proper fraction makes a mixed number.
    if not 0 < above < below:
        raise _NotNumeric
    return sign * (whole + above / below)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _NotNumeric
            # Two numbers beside each other ("1 2", "3 .5") are not one number.
            if self._tokens and _is_number(self._tokens[-1]) and _is_number(match[1]):
                raise _NotNumeric
            self._tokens.append(match[1])
            position = match.end()
        self._next = 0
        self._depth = 0

    def value(self) -> Fraction:
        value = self._sum()
        if self._peek():
            raise _NotNumeric
        return value

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _pop(self, expected: str = "") -> str:
        token = self._peek()
        if not token or (expected and token != expected):
            raise _NotNumeric
        self._next += 1
        return token

    def _sum(self) -> Fraction:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _NotNumeric
        sign = self._sign()
        total = sign * self._product()
        while self._peek() in ("+", "-"):
            sign = self._sign()
            total = _capped(total + sign * self._product())
        self._depth -= 1
        return total

    def _sign(self) -> int:
        if self._peek() in ("+", "-"):
            return -1 if self._pop() == "-" else 1
        return 1

    def _product(self) -> Fraction:
        value = self._power()
        divided = False
        while (token := self._peek()) in ("*", "/", "(", "\\frac", "\\sqrt", "\\binom"):
            if token in ("*", "/"):
                self._pop()
                factor = self._power()
                divided = divided or token == "/"
                value = _capped(value / factor if token == "/" else value * factor)
            elif divided:
                raise _NotNumeric  # "1/2(3)" reads as 1.5 or 1/6
            else:
                value = _capped(value * self._power())
        return value

    def _power(self) -> Fraction:
        base = self._atom()
        if self._peek() == "!":
            self._pop()
            base = _factorial(base)
        if self._peek() == "^":
            self._pop()
            exponent = self._group() if self._peek() in ("{", "(") else self._signed_literal()
            base = _power(base, exponent)
        # "9!!" is not (9!)!, and "2^3^2" has two readings.
        if self._peek() in ("!", "^"):
            raise _NotNumeric
        return base

    def _signed_literal(self) -> Fraction:
        sign = self._sign()
        return sign * _literal(self._number())

    def _number(self) -> str:
        token = self._pop()
        if not _is_number(token):
            raise _NotNumeric
        return token

    def _group(self) -> Fraction:
        closer = {"{": "}", "(": ")"}.get(self._pop())
        if closer is None:
            raise _NotNumeric
        value = self._sum()
        self._pop(closer)
        return value

    def _atom(self) -> Fraction:
        token = self._peek()
        if token in ("{", "("):
            return self._group()
        if token == "\\frac":
            self._pop()
            above = self._group()
            return _capped(above / self._group())
        if token == "\\sqrt":
            self._pop()
            return _exact_root(self._group())
        if token == "\\binom":
            self._pop()
            above = self._group()
            return _binomial(above, self._group())
        number = self._number()
        if number.isdecimal() and self._peek() == "\\frac":
            self._pop()
            above = self._group()
            return _mixed(Fraction(1), _literal(number), above, self._group())
        return _literal(number)


def _is_number(token: str) -> bool:
    return token[0].isdecimal() or token[0] == "."


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise _NotNumeric
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > _MAX_BITS or (base == 0 and exponent <= 0):
        raise _NotNumeric
    return Fraction(base**exponent.numerator)


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or not 0 <= value <= _MAX_FACTORIAL:
        raise _NotNumeric
    return Fraction(math.factorial(value.numerator))


def _binomial(above: Fraction, below: Fraction) -> Fraction:
    if above.denominator != 1 or below.denominator != 1 or not 0 <= below <= above <= _MAX_BINOMIAL:
        raise _NotNumeric
    return Fraction(math.comb(above.numerator, below.numerator))


def _exact_root(value: Fraction) -> Fraction:
    if value < 0:
        raise _NotNumeric
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root * root != value:
        raise _NotNumeric
    return root
