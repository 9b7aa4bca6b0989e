# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Splits a unit off an answer: "42 \text{ cm}", "336°", "62.5%", "$1,500", "42 apples"."""

from __future__ import annotations

import re

from megacurl.rewards.normalise import CURRENCY, TEXT_BEGIN, TEXT_END

PERCENT = "%"
# Units that are told apart. Any other word ("apples", "ways") is dropped without being compared.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    PERCENT: ("percent", "per cent", "pct"),
    "deg": ("degree", "degrees", "°"),
    "rad": ("radian", "radians"),
    "usd": ("dollar", "dollars", "usd"),
    "cent": ("cent", "cents"),
    "mm": ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
    "cm": ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
    "m": ("m", "meter", "meters", "metre", "metres"),
    "km": ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
    "in": ("in", "inch", "inches"),
    "ft": ("ft", "foot", "feet"),
    "yd": ("yd", "yard", "yards"),
    "mi": ("mi", "mile", "miles"),
    "g": ("g", "gram", "grams"),
    "kg": ("kg", "kilogram", "kilograms"),
    "lb": ("lb", "lbs", "pound", "pounds"),
    "oz": ("oz", "ounce", "ounces"),
    "ml": ("ml", "milliliter", "milliliters", "millilitre", "millilitres"),
    "l": ("l", "liter", "liters", "litre", "litres"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "day": ("day", "days"),
    "week": ("week", "weeks"),
    "month": ("month", "months"),
    "year": ("yr", "yrs", "year", "years"),
    "mi/h": ("mph",),
}
_CANONICAL = {word: unit for unit, words in _SYNONYMS.items() for word in words}
# Words that change the value or leave it open; with one of them the tail is no unit.
_NOT_UNITS = re.compile(
    r"\b(?:or|and|not|nor|n?either|maybe|perhaps|but|is|are|was|if|when|where|with|without|unless"
    r"|except|plus|minus|times|over|under|more|less|least|most|than|about|approximately|around"
    r"|roughly|hundred|thousand|million|billion|trillion|dozen|half|quarter|tenths|hundredths"
    r"|thousandths|mod|modulo|base|squared|cubed|factorial|choose|roots?|alpha|beta|gamma|delta"
    r"|epsilon|theta|lambda|sigma|omega|sqrt|sine|cosine|tangent|sinh|cosh|tanh|log|undefined"
    r"|wrong|incorrect|for|all|any|every|integers?|even|odd|real|imaginary|complex)\b"
)
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_SHORT_WORDS = frozenset(("men", "cup", "egg", "way", "box", "car", "of", "the", "per", "a", "an"))

_POWER = r"\s*(\^\s*\{?[23]\}?)?\s*$"
_JOINED = "|".join(word for word in _CANONICAL if len(word) >= 2) + "|st|nd|rd|th"
_SYMBOL = re.compile(r"^(.*?)\s*(%|°\s*[\x02]?\s*[CF]?[\x03]?)\s*$")
_IN_TEXT = re.compile(
    rf"^(.*[^\s^_]|.*\^)\s*{TEXT_BEGIN}([^{TEXT_BEGIN}{TEXT_END}]*){TEXT_END}{_POWER}"
)
_PLAIN = re.compile(rf"^(.*[0-9)}}])\s+([A-Za-z][A-Za-z/ -]*){_POWER}")
_ATTACHED = re.compile(rf"^(.*[0-9])((?:{_JOINED})(?:/[A-Za-z]+)?){_POWER}")


def split_unit(text: str) -> tuple[str, str | None]:
    """(rest, unit) of normalised text; unit is None without one, "" for a word that is no measure.

    The rest must contain a digit: "\\text{Evelyn}" or "x \\text{ is even}" has no unit.
    """
    unit: str | None = None
    if text.lstrip("+- ").startswith(CURRENCY):
        text, unit = text.replace(CURRENCY, "", 1), "usd"
    rest, suffix = _split_suffix(text)
    if suffix is not None and any(c.isdecimal() for c in rest):
        text, unit = rest, suffix or unit or ""
    return text.strip(), unit


def _split_suffix(text: str) -> tuple[str, str | None]:
    if (match := _SYMBOL.match(text)) is not None:
        return match[1], PERCENT if match[2] == "%" else "deg"
    for pattern, in_text in ((_IN_TEXT, True), (_PLAIN, False), (_ATTACHED, False)):
        if (match := pattern.match(text)) is None:
            continue
        rest, words, power = match.groups()
        unit = _unit(words, power or "", in_text)
        if unit is not None:
            return rest.rstrip("^ ") if in_text else rest, unit
    return text, None


def _unit(words: str, power: str, in_text: bool) -> str | None:
    """Canonical unit, "" for a plain noun, None if these words are no unit."""
    name = " ".join(words.replace(".", " ").replace("-", " ").lower().split())
    name = name.replace(" per ", "/").replace(" / ", "/")
    exponent = "".join(c for c in power if c in "23")
    for word, value in (("square ", "2"), ("sq ", "2"), ("cubic ", "3")):
        if name.startswith(word):
            name, exponent = name.removeprefix(word), value
    parts = name.split("/")
    if not all(_is_unit_word(part, in_text) for part in parts):
        return None
    known = [_CANONICAL.get(part, "") for part in parts]
    if not all(known):
        return ""
    return "/".join(known) + (f"^{exponent}" if exponent else "")


def _is_unit_word(name: str, in_text: bool) -> bool:
    words = name.split()
    if not 1 <= len(words) <= 4 or _NOT_UNITS.search(name):
        return False
    if name in _CANONICAL or name in _ORDINALS:
        # A single letter outside \text{} is more often a variable than a metre.
        return in_text or len(name) > 1
    # Two or three letters may be a product of variables, "2 xy".
    return len(words[-1]) >= 3 and all(
        word.isalpha() and (len(word) >= 4 or word in _SHORT_WORDS or word in _CANONICAL)
        for word in words
    )
