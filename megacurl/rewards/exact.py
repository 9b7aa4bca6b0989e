# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Decides whether two answers are the same, exactly: numbers as fractions, the rest as text.

Nothing is rounded and nothing is evaluated that could grow. Lists, intervals, equations and units
are taken apart here; single expressions that differ as text may be handed to a computer algebra
system, and are different without one. Policies are listed in docs/grading.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from megacurl.rewards.canonical import canonical_terms
from megacurl.rewards.collection import split_collection
from megacurl.rewards.inequality import to_interval
from megacurl.rewards.latex import peel, split_top
from megacurl.rewards.normalise import TEXT_BEGIN, TEXT_END, normalise, tight
from megacurl.rewards.number import parse_number
from megacurl.rewards.units import PERCENT, split_unit

# Longer answers are compared as digits or verbatim only.
MAX_CHARACTERS = 500
_MAX_DEPTH = 5
_MAX_ITEMS = 64

_INTEGER = re.compile(r"([+-]?)\s*0*([0-9]+)")
_NAME = re.compile(r"(?:[A-Za-z]|\\[a-zA-Z]+)(?:_\w|_\{\w+\})?'?(?:\([A-Za-z](?:,[A-Za-z])*\))?")
_MEMBER = re.compile(r"([A-Za-z]|\\[a-z]+)\s*\\in(?![a-zA-Z])\s*(.+)")
_BASED = re.compile(r"([0-9]+)_\{?([0-9]+)\}?")
_CHOICE = re.compile(r"\(?([A-E])[).:]\s*(\S.*)", re.DOTALL)
_HEDGE = re.compile(r"\b(?:or|and)\b|\(?[A-Z][).:]|[;/]|,(?![0-9]{3})")
_RELATION = re.compile(r"[<>]|\\(?:le|ge|ne|approx|equiv|sim)(?![a-zA-Z])")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' -]{2,}")


Same = Callable[[str, str], bool]
"""Says whether two normalised texts are the same answer."""


def answers_equal(given: str, truth: str, algebra: Same | None = None) -> bool:
    """True when `given` states the same answer as `truth`. Thread-safe; never raises on text.

    algebra: decides between two single expressions that differ as text, if given.
    """
    left, right = _digits(given), _digits(truth)
    if left and right:
        return left == right
    given, truth = peel(given), peel(truth)
    if len(given) > MAX_CHARACTERS or len(truth) > MAX_CHARACTERS:
        return _long_equal(given, truth)
    given_normal, truth_normal = normalise(given), _normalise_truth(truth)
    if _same(given_normal, truth_normal, algebra):
        return True
    return any(_same(other, truth_normal, algebra) for other in _choice_readings(given_normal))


def normalised_equal(given: str, truth: str, algebra: Same | None = None) -> bool:
    """The same of texts that are normalised already, such as the parts of a list."""
    return _same(given, truth, algebra)


@lru_cache(maxsize=4096)
def _normalise_truth(truth: str) -> str:
    # Every rollout of a group is compared with the same truth.
    return normalise(truth)


def _long_equal(given: str, truth: str) -> bool:
    left, right = _digits(given.replace(",", "")), _digits(truth.replace(",", ""))
    return left == right if left and right else given == truth


def _digits(text: str) -> str | None:
    """Sign and digits of an integer of any length; int() would refuse over 4,300 digits."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    negative = match[1] == "-" and match[2] != "0"
    return ("-" if negative else "") + match[2]


def _choice_readings(given: str) -> list[str]:
    """Of "(C) 42": the label and the value. None of it when several choices are named."""
    match = _CHOICE.fullmatch(_bare(given))
    if match is None or _HEDGE.search(match[2]):
        return []
    label, value = match.groups()
    # "(A) B" would claim two letters at once.
    return [] if value.isalpha() and len(value) == 1 else [label, value]


def _bare(text: str) -> str:
    """Without text marks and round brackets around the whole."""
    return peel(text.replace(TEXT_BEGIN, "").replace(TEXT_END, ""))


def _same(given: str, truth: str, algebra: Same | None, depth: int = 0) -> bool:
    given, truth = peel(given), peel(truth)
    plain_given, plain_truth = tight(given), tight(truth)
    if plain_given == plain_truth:
        return bool(plain_given)
    if depth > _MAX_DEPTH or not plain_given or not plain_truth:
        return False
    left, right = _digits(plain_given), _digits(plain_truth)
    if left and right:
        return left == right

    def same(a: str, b: str) -> bool:
        return _same(a, b, algebra, depth + 1)

    for rule in _RULES:
        decided = rule(given, truth, same)
        if decided is not None:
            return decided
    return _same_text(given, truth) or (algebra is not None and algebra(given, truth))


def _same_quantity(given: str, truth: str, same: Same) -> bool | None:
    """Numbers, with or without units; expressions with a unit on at least one side."""
    given_rest, given_unit = split_unit(given)
    truth_rest, truth_unit = split_unit(truth)
    if given_unit and truth_unit and given_unit != truth_unit:
        return False
    left, right = parse_number(given_rest), parse_number(truth_rest)
    if left is not None and right is not None:
        return left == right or _percent_equal(left, given_unit, right, truth_unit)
    if given_unit is not None or truth_unit is not None:
        return same(given_rest, truth_rest)
    return None


def _percent_equal(
    left: Fraction, left_unit: str | None, right: Fraction, right_unit: str | None
) -> bool:
    """42% is the number 0.42 too, when the other side has no percent sign."""
    if (left_unit == PERCENT) == (right_unit == PERCENT):
        return False
    return left == right * 100 if left_unit == PERCENT else left * 100 == right


def _same_equation(given: str, truth: str, same: Same) -> bool | None:
    """ "x = 5" against "5", "y = 2x" against "y = 2x", "m + n = 42" against "42"."""
    if any(_RELATION.search(text) for text in (given, truth)):
        return None
    given_member, truth_member = _MEMBER.fullmatch(given), _MEMBER.fullmatch(truth)
    if given_member or truth_member:
        if given_member and truth_member and given_member[1] != truth_member[1]:
            return False
        left = given_member[2] if given_member else given
        return same(left, truth_member[2] if truth_member else truth)
    given_sides, truth_sides = _sides(given), _sides(truth)
    if not given_sides and not truth_sides:
        return None
    if given_sides and truth_sides:
        return _same_sides(given_sides, truth_sides, same)
    if truth_sides:
        if len(truth_sides) != 2 or not _NAME.fullmatch(tight(truth_sides[0])):
            return False
        return same(given, truth_sides[1])
    value = _value_of(given_sides)
    return value is not None and same(value, truth)


def _sides(text: str) -> list[str]:
    """Sides of an equation; empty when `text` is none, or is a list of equations."""
    if "=" not in text or split_collection(text) is not None:
        return []
    sides = split_top(text, "=")
    return [side.strip() for side in sides] if len(sides) > 1 else []


def _same_sides(given: list[str], truth: list[str], same: Same) -> bool:
    if len(given) != 2 or len(truth) != 2:
        return False
    pairs = [(given, truth), (given[::-1], truth)]
    if any(all(same(a, b) for a, b in zip(*p, strict=True)) for p in pairs):
        return True
    # "y = 3x + 13" and "3x - y + 13 = 0": the same difference of both sides, up to its sign.
    return any(same(f"{a}-({b})", f"{truth[0]}-({truth[1]})") for a, b in (given, given[::-1]))


def _value_of(sides: list[str]) -> str | None:
    """What an equation says: its number if it has one, else its last side; None if it is false."""
    numbers = {parse_number(split_unit(side)[0]): side for side in sides}
    numeric = [side for number, side in numbers.items() if number is not None]
    if len(numeric) > 1:
        return None
    return numeric[0] if numeric else sides[-1]


def _same_inequality(given: str, truth: str, same: Same) -> bool | None:
    """ "x >= 2" against "[2, \\infty)", "2 <= x" or "x >= 4/2"."""
    left, right = to_interval(given), to_interval(truth)
    if left is not None and right is not None:
        return left[0] == right[0] and same(left[1], right[1])
    if left is not None and _is_interval(truth):
        return same(left[1], truth)
    if right is not None and _is_interval(given):
        return same(given, right[1])
    return None


def _is_interval(text: str) -> bool:
    collection = split_collection(text)
    return collection is not None and collection.is_interval


def _same_collection(given: str, truth: str, same: Same) -> bool | None:
    left, right = split_collection(given), split_collection(truth)
    if left is None and right is None:
        return None
    if left is None or right is None or left.kind != right.kind:
        return False
    if len(left.items) != len(right.items) or len(left.items) > _MAX_ITEMS:
        return False
    if left.ordered:
        return all(same(a, b) for a, b in zip(left.items, right.items, strict=True))
    remaining = list(right.items)
    for item in left.items:
        match = next((r for r in remaining if same(item, r)), None)
        if match is None:
            return False
        remaining.remove(match)
    return True


def _same_digits_in_base(given: str, truth: str, same: Same) -> bool | None:
    """A truth like 2516_8 may be answered without its base, not with another one."""
    based_truth = _BASED.fullmatch(tight(truth))
    if based_truth is None:
        return None
    based_given = _BASED.fullmatch(tight(given))
    if based_given is not None:
        return based_given.groups() == based_truth.groups()
    return tight(given) == based_truth[1]


def _same_text(given: str, truth: str) -> bool:
    left, right = _bare(given), _bare(truth)
    if _WORDS.fullmatch(left) and _WORDS.fullmatch(right):
        return left.casefold().split() == right.casefold().split()
    if left == right:
        return True
    return canonical_terms(left) == canonical_terms(right)


# The first that has a decision is believed.
_RULES: tuple[Callable[[str, str, Same], bool | None], ...] = (
    _same_quantity,
    _same_inequality,
    _same_equation,
    _same_collection,
    _same_digits_in_base,
)
