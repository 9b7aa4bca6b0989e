# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""The grader of the published DAPO runs, for parity with them (verl, reward_score/math_dapo.py).

Every quirk is kept, because a verdict must not differ: only the end of the response is read, a
"\boxed{}" without "Answer:" does not count, and no two spellings of a number are equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from megacurl.rewards.registry import register_verifier
from megacurl.rewards.verdict import Verdict

_WINDOW, _BOX_WINDOW = 300, 100
_INVALID = "[INVALID]"
_ANSWER = re.compile(r"Answer\s*:\s*([^\n]+)", re.IGNORECASE)

# In this order; what a removal joins together can be removed by a later one.
_REPLACED = (
    ("an ", ""), ("a ", ""), (".$", "$"), ("\\$", ""), ("\\ ", ""), (" ", ""), ("mbox", "text"),
    (",\\text{and}", ","), ("\\text{and}", ","), ("\\text{m}", "\\text{}"),
)  # fmt: skip
_REMOVED = (
    "square", "ways", "integers", "dollars", "mph", "inches", "hours", "km", "units", "\\ldots",
    "sue", "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds",
    "meters", "meals", "edges", "students", "childrentickets", "multiples", "\\text{s}",
    "\\text{.}", "\\text{\ns}", "\\text{}^2", "\\text{}^3", "\\text{\n}", "\\text{}",
    "\\mathrm{th}", "^\\circ", "^{\\circ}", "\\;", ",\\!", "{,}", '"', "\\dots",
)  # fmt: skip
# "." stops at line ends, as in the original; \boxed is the greedy one.
_REWRITTEN = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r".*?\$(.*?)\$.*", r"$\1$"),
        (r"\\text\{(.*?)\}", r"\1"),
        (r"\\textbf\{(.*?)\}", r"\1"),
        (r"\\overline\{(.*?)\}", r"\1"),
        (r"\\boxed\{(.*)\}", r"\1"),
        (r"frac([^{])(.)", r"frac{\1}{\2}"),
        (r"sqrt([^{])", r"sqrt{\1}"),
    )
)


@register_verifier("dapo_exact")
@dataclass(frozen=True)
class DapoExact:
    """Right when the text behind the last "Answer:" equals the reference after normalisation.

    strict_box: the last box of the last 100 characters must be the reference, as written.

    Whether the response finished does not matter. DAPO's rewards are +1 and -1.
    """

    strict_box: bool = False

    def __call__(self, response: str, answer: str, *, finished: bool) -> Verdict:
        window = response[-_WINDOW:]
        if self.strict_box:
            found = _last_box(window[-_BOX_WINDOW:])
            prediction, reference = found, answer
        else:
            lines = _ANSWER.findall(window)
            found = lines[-1] if lines else None
            prediction, reference = dapo_normalise(found or _INVALID), dapo_normalise(answer)
        if found is None:
            # The placeholder is a string like any other: it equals a reference that says the same.
            return Verdict(correct=reference == _INVALID, parsed=False)
        return Verdict(correct=prediction == reference, parsed=True, extracted=prediction)


def dapo_normalise(text: str) -> str:
    """The spelling in which the two answers are compared."""
    text = text.rpartition("=")[2]
    for old, new in _REPLACED:
        text = text.replace(old, new)
    for old in _REMOVED:
        text = text.replace(old, "")
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    text = text.replace("$", "")
    digits = text.replace(",", "")
    return digits if digits.isdigit() else text.strip()


def _last_box(text: str) -> str | None:
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0 and text[index] == "}":
            return text[start + len("\\boxed{") : index]
    return None
