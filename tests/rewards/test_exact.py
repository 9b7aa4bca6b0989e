# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What counts as the same answer, and what must not."""

from __future__ import annotations

import random
import time
from fractions import Fraction

import pytest

from megacurl.rewards import answers_equal

EQUAL = [
    # integers and decimals
    ("042", "42"), ("42.0", "42"), ("+42", "42"), ("- 7", "-7"), ("\u22127", "-7"), ("–7", "-7"),
    ("-0", "0"), ("１２", "12"), ("1,234,567", "1234567"), ("1\\,234\\,567", "1234567"),
    ("1 234 567", "1234567"), ("11,\\! 111,\\! 100", "11111100"), ("1{,}234", "1234"),
    ("1.024e3", "1024"), ("1.5 \\times 10^{-3}", ".0015"), ("\\mathbf{42}", "42"),
    ("((42))", "42"), ("42\x00", "42"), ("\ufeff42\u200b", "42"), ("42\\\\", "42"), ("`42`", "42"),
    ("{42}", "42"),
    # fractions, powers, arithmetic
    ("3/4", "\\frac{3}{4}"), ("\\tfrac34", "0.75"), ("\\frac{270}7", "270/7"), ("6/8", "3/4"),
    ("-\\frac{1}{2}", "\\frac{-1}{2}"), ("\\frac{1}{-2}", "-.5"), ("1 3/4", "\\frac{7}{4}"),
    ("-1 3/4", "-7/4"), ("1\\frac{3}{4}", "7/4"), ("137 \\frac{1}{2}", "137.5"), ("1½", "3/2"),
    ("2^{10}", "1024"), ("2^10", "1024"), ("5²", "25"), ("2**10", "1024"), ("2^{-1}", "1/2"),
    ("\\frac{2016}{2017^{2}}", "\\frac{2016}{4068289}"), ("5!", "120"), ("\\sqrt{16}", "4"),
    ("\\binom{10}{3}", "120"), ("2021 \\cdot 505 \\cdot 337", "343943885"), ("3(4+5)", "27"),
    # equations and membership
    ("m+n = 42", "42"), ("42 = 25 + 17", "42"), ("x = 6 * 7 = 42", "42"), ("5", "x=5"),
    ("2x+3", "y = 2x + 3"), ("y=2x+3", "2x+3"), ("[-2,7]", "x \\in [-2,7]"), ("4=x", "x=4"),
    # units, currency, percent
    ("336", "336^\\circ"), ("42°", "42 \\text{ degrees}"), ("42 \\text{ m/s}", "42"),
    ("42cm", "42"), ("42 apples", "42"), ("42 square units", "42"),
    ("864 inches^2", "864 \\mbox{ in}^2"), ("15", "15\\mbox{ cm}^2"), ("\\$1,500.00", "1500"),
    ("$36", "\\$36"), ("36 dollars", "\\$36"), ("2\\sqrt{3} \\text{ cm}", "2\\sqrt{3}"),
    ("42\\%", "42"), ("42 \\text{ percent}", "42\\%"), ("5\\%", "0.05"), ("0.625", "62.5%"),
    ("42nd", "42"), ("30\\,\\mathrm{cm}", "30 cm"),
    # choices, words, bases
    ("(D)", "D"), ("\\textbf{(D) }", "D"), ("(C) 42", "C"), ("\\textbf{(C) }42", "42"),
    ("D.", "D"), ("(B) 1,500", "1500"), ("Odd", "\\text{odd}"), ("2:15\\text{ PM}", "2:15 PM"),
    ("nan", "nan"), ("2516", "2516_8"), ("52_8", "52_{8}"),
    # collections
    ("1, -2", "-2,1"), ("\\{1/2, 3\\}", "3, 0.5"), ("1 and -2", "-2,1"), ("3,-3", "\\pm 3"),
    ("x=1 \\text{ or } x=-2", "-2,1"), ("x = \\pm 3", "3,-3"),
    ("1-\\sqrt{19}, 1+\\sqrt{19}", "1 \\pm \\sqrt{19}"),
    ("(3, \\pi/2)", "\\left(3, \\frac{\\pi}{2}\\right)"),
    ("(9,36)\\cup(0,9)", "(0,9) \\cup (9,36)"), ("(-\\infty, 2]", "(-∞,2]"),
    ("(2,+\\infty)", "(2,\\infty)"),
    ("\\begin{pmatrix} 1& 2 \\\\3 &4 \\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"),
    # expressions
    ("e^{16}-1", "-1 + e^{16}"), ("pi/2", "\\frac{\\pi}{2}"), ("2*sqrt(3)", "2\\sqrt{3}"),
    ("2√3", "2\\sqrt3"), ("\\frac{1+\\sqrt{2}}{2}", "(1+sqrt(2))/2"), ("9i+6", "6+9i"),
    ("x^{2}y", "x^2y"), ("-q+p", "p - q"),
]  # fmt: skip

DIFFERENT = [
    ("", "42"), ("()", "42"), ("41", "42"), ("-42", "42"), ("42.5", "42"), ("4 2", "42"),
    ("--42", "42"), ("42", "42,000"), ("1,234,5", "12345"), ("12,34", "1234"),
    ("22099999999999998951425", "22099999999999998951424"), ("0.333", "\\frac{1}{3}"),
    ("0.333...", "0.333"), ("3.4641", "2\\sqrt{3}"), ("42", "42i"), ("42.", "42.1"),
    ("\\frac{1}{2^{98}}", "\\frac{1}{2^{99}}"), ("\\frac{1}{2006!}", "\\frac{1}{2004!}"),
    ("0/0", "42"), ("9!!", "362880"), ("2\\frac{5}{3}", "11/3"), ("2^{1}0", "1024"),
    ("1/2(3)", "1.5"), ("42!", "42"), ("41 \\text{ or } 42", "42"), ("41, 42", "42"),
    ("\\{1,42\\}", "42"), ("A and D", "D"), ("(A) or (B)", "A"), ("(A) B", "B"), ("(A) B", "A"),
    ("d", "D"), ("41 = 42", "42"), ("41 = 42", "41"), ("0", "3x-y+13=0"),
    ("3x+4y+14=0", "3x-y+13=0"), ("y=5", "x=5"), ("x \\ne 42", "42"), ("x > 42", "42"),
    ("\\approx 42", "42"), ("42 \\text{ thousand}", "42"), ("42 million", "42"),
    ("42 or so", "42"), ("not 42", "42"), ("42 x", "42"), ("42 xy", "42"), ("42abcd", "42"),
    ("42 \\pm 1", "42"), ("42 \\pi", "42"), ("42 pi", "42"), ("42k", "42"),
    ("15 \\text{ m}^2", "15\\mbox{ cm}^2"), ("36 cents", "\\$36"), ("5\\%", "0.5"),
    ("6.25", "62.5%"), ("2516_9", "2516_8"), ("52_8", "52"), ("1", "1,1"), ("3", "\\pm 3"),
    ("-2,1,3", "-2,1"), ("(1,-2)", "(-2,1)"), ("[0,1)", "[0,1]"), ("(1,2)", "1,2"),
    ("12:00", "1:00"), ("3:4", "\\frac{3}{4}"), ("4\\sqrt{2}", "4"),
    ("9/32\\sqrt{2}", "\\frac{9}{32}\\sqrt{2}"), ("e^+2-1", "e^-1+2"),
    ("\\frac{}{4}", "\\frac{3}{4}"), ("3r^2", "3R^2"), ("NaN", "42"), ("exec(42)", "42"),
    ("42__import__", "42"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "truth"), EQUAL)
def test_equal(given: str, truth: str) -> None:
    assert answers_equal(given, truth)


@pytest.mark.parametrize(("given", "truth"), DIFFERENT)
def test_different(given: str, truth: str) -> None:
    assert not answers_equal(given, truth)


def test_integers_of_any_length() -> None:
    """Python refuses int() of more than 4,300 digits; 5,000 must compare all the same."""
    digits = "7" * 5000
    assert answers_equal(digits, digits)
    assert answers_equal("000" + digits, f"({digits})")
    assert answers_equal("7," + ",".join(["777"] * 1666), "7" * 4999)
    assert not answers_equal(digits[:-1] + "8", digits)
    assert not answers_equal("-" + digits, digits)


@pytest.mark.parametrize(
    "given",
    [
        "999999999^{99999999}", "9^{9^{9}}", "9!!!!!!!!!!", "10000000!", "\\binom{1000000}{500000}",
        "1e999999999", "(" * 400 + "1" + "^9" * 100, "(1e999)*" * 60 + "1", "2^" * 240 + "2",
        "\\frac{1}{1+" * 40 + "1" + "}" * 40, "\\left(x+1\\right)" * 60, "\\pm1" * 100, "1," * 249,
        "\\text{" * 80 + "}" * 80, "1 a " * 120, "x=1," * 120, "{" * 499, "\\frac" * 99, "-" * 499,
    ],
)  # fmt: skip
def test_hostile_expressions_are_wrong_at_once(given: str) -> None:
    start = time.process_time()
    for truth in ("42", "\\frac{1}{3}", "1,2,3", "x^2+1"):
        assert not answers_equal(given, truth)
    assert time.process_time() - start < 1.0


def test_random_text_never_raises() -> None:
    pieces = [
        *"{}()123.^_=+-*/!,[]xe%$°½¤ \x02\x03\ud800",
        *("\\" + name for name in ("frac", "sqrt", "text{", "boxed{", "pm", "cup", "left", "in")),
        *("\\binom", "\\\\", "\\{", "\\}", "\\$", "**", "and ", "or ", " cm", "23"),
    ]
    rng = random.Random(0)
    for _ in range(1500):
        given = "".join(rng.choices(pieces, k=rng.choice([4, 15, 80])))
        truth = "".join(rng.choices(pieces, k=rng.choice([3, 10])))
        assert answers_equal(given, truth) in (True, False)


def spellings(value: Fraction) -> list[str]:
    """Ways in which people write one number."""
    sign, size = ("-" if value < 0 else ""), abs(value)
    above, below = size.numerator, size.denominator
    forms = [
        f"{sign}\\frac{{{above}}}{{{below}}}",
        f"\\dfrac{{{sign}{3 * above}}}{{{3 * below}}}",
        f"{sign}{above}/{below}",
        f"$ {sign}{above} / {below} $",
        f"x = {sign}{above}/{below} \\text{{ cm}}",
    ]
    whole, rest = divmod(above, below)
    if whole and rest:
        forms += [f"{sign}{whole} {rest}/{below}", f"{sign}{whole}\\frac{{{rest}}}{{{below}}}"]
    if 1000 % below == 0:
        decimal = f"{float(size):.3f}"
        forms += [sign + decimal, f"{sign}{float(size) * 1000:.0f}e-3"]
    return forms


def test_spellings_are_equal_exactly_when_the_values_are() -> None:
    values = {Fraction(a, b) for a in (-7, -1, 1, 3, 10, 1234) for b in (1, 2, 3, 7, 8, 40)}
    written = [(value, form) for value in sorted(values) for form in spellings(value)]
    assert len(written) > 200
    for value, form in written:
        for other, truth in written[::7]:
            assert answers_equal(form, truth) == (value == other), (form, truth)
