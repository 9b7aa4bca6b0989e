# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The registry, the batch function, and the two verifiers as objects."""

from __future__ import annotations

import logging
import math
import pickle
from typing import Any

import pytest

from megacurl.rewards import (
    Verdict,
    get_verifier,
    register_verifier,
    verifier_names,
    verify_batch,
)
from megacurl.rewards.coin_flip import CoinFlip
from megacurl.rewards.list_answers import ListAnswers
from megacurl.rewards.math_rule import MathRule
from megacurl.rewards.registry import verifier_options


def test_registry() -> None:
    assert {"coin_flip", "math"} <= set(verifier_names())
    assert get_verifier("math") == MathRule()
    assert get_verifier("coin_flip", seed=3) == CoinFlip(seed=3)
    with pytest.raises(ValueError, match=r"unknown verifier 'maths' \(did you mean 'math'\?\)"):
        get_verifier("maths")
    with pytest.raises(ValueError, match=r"verifier 'math' does not take {'sed': 1}"):
        get_verifier("math", sed=1)
    with pytest.raises(ValueError, match="'math' is registered twice"):
        register_verifier("math")(MathRule)


def test_a_function_can_be_a_verifier() -> None:
    def echo(response: str, answer: str, *, finished: bool) -> Verdict:
        return Verdict(correct=response == answer, parsed=finished)

    register_verifier("echo_of_this_test")(echo)
    verifier = get_verifier("echo_of_this_test")
    assert verifier("a", "a", finished=True) == Verdict(correct=True, parsed=True)
    with pytest.raises(ValueError, match="takes no options"):
        get_verifier("echo_of_this_test", seed=1)


def test_math_verdicts() -> None:
    math = get_verifier("math")
    assert math("Answer: 42.0", "42", finished=True) == Verdict(True, True, extracted="42.0")
    assert math("Answer: 41", "42", finished=True) == Verdict(False, True, extracted="41")
    assert math("It is 42.", "42", finished=True) == Verdict(False, False)
    assert math("Answer: 42", "42", finished=False) == Verdict(False, False)


@pytest.mark.parametrize(
    ("given", "truth", "paid"),
    [
        ("4 * 3 + 7", "19", False), ("2^{10}", "1024", False), ("38/2", "19", False),
        ("19", "19", True), ("x = 19", "19", True), ("4 * 3 + 7 = 19", "19", True),
        ("\\$1,500.00", "1500", True), ("19 apples", "19", True), ("3/4", "0.75", True),
        ("7" * 600, "7" * 600, True),
    ],
)  # fmt: skip
def test_require_value_refuses_a_copied_question(given: str, truth: str, paid: bool) -> None:
    response = f"Answer: {given}"
    assert get_verifier("math")(response, truth, finished=True).correct
    strict = get_verifier("math", require_value=True)
    assert strict(response, truth, finished=True).correct is paid


def test_flags_that_are_left_alone_are_no_options() -> None:
    plain = verifier_options(require_value=False, symbolic=True, correct_threshold=None)
    assert plain == {}
    strict = verifier_options(require_value=True, symbolic=False, correct_threshold=None)
    assert get_verifier("math", **strict) == MathRule(require_value=True, symbolic=False)
    with pytest.raises(ValueError, match=r"'coin_flip' does not take .*'symbolic': False"):
        get_verifier("coin_flip", symbolic=False)
    lenient = verifier_options(require_value=False, symbolic=True, correct_threshold=0.5)
    assert get_verifier("list_answers", **lenient) == ListAnswers(correct_threshold=0.5)
    with pytest.raises(ValueError, match=r"'math' does not take .*'correct_threshold': 0.5"):
        get_verifier("math", **lenient)


def test_coin_flip_is_fair_repeatable_and_independent() -> None:
    coin, other = CoinFlip(), CoinFlip(seed=1)
    flips = [coin(f"response {i}", "42", finished=True).correct for i in range(4000)]
    assert flips == [coin(f"response {i}", "42", finished=False).correct for i in range(4000)]
    # Four standard deviations of 4,000 fair flips are 126.
    assert abs(sum(flips) - 2000) < 126
    agree = sum(
        f == other(f"response {i}", "42", finished=True).correct for i, f in enumerate(flips)
    )
    assert abs(agree - 2000) < 126
    by_answer = [coin("r", str(i), finished=True).correct for i in range(64)]
    assert {True, False} == set(by_answer)
    assert coin("\ud800", "42", finished=True).parsed


def test_batch_keeps_order_and_survives_a_broken_verifier(caplog: pytest.LogCaptureFixture) -> None:
    def fragile(response: str, answer: str, *, finished: bool) -> Verdict:
        if response.startswith("bad"):
            raise RuntimeError(f"cannot read {response}")
        return Verdict(correct=response == answer, parsed=True, extracted=response)

    with caplog.at_level(logging.ERROR, logger="megacurl"):
        verdicts = verify_batch(
            fragile, ["1", "bad1", "2", "bad2"], ["1", "7", "1", "1"], [True] * 4
        )
    assert [v.correct for v in verdicts] == [True, False, False, False]
    assert [v.parsed for v in verdicts] == [True, False, True, False]
    assert [v.error for v in verdicts][::2] == [None, None]
    assert verdicts[1].error == "RuntimeError: cannot read bad1"
    assert len(caplog.records) == 1, "one line a batch"
    assert "raised on 2 of 4 responses" in caplog.text and "answer '7'" in caplog.text


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (math.nan, "ValueError: grade is nan; it must lie in"),
        (1.5, "ValueError: grade is 1.5"),
        (-0.1, "ValueError: grade is -0.1"),
        (math.inf, "ValueError: grade is inf"),
        ("0.5", "TypeError: grade is '0.5' (str)"),
        (True, "TypeError: grade is True (bool)"),
        (1.0, "ValueError: grade 1 with correct=False"),
    ],
)
def test_a_grade_that_is_none_is_the_verifiers_error(given: Any, error: str) -> None:
    def careless(response: str, answer: str, *, finished: bool) -> Verdict:
        return Verdict(correct=False, parsed=True, grade=given if response == "bad" else 0.5)

    good, bad = verify_batch(careless, ["good", "bad"], ["1", "1"], [True] * 2)
    assert (good.score, good.error) == (0.5, None)
    assert (bad.correct, bad.parsed, bad.score, bad.grade) == (False, False, 0.0, None)
    assert bad.error is not None and bad.error.startswith(error)


def test_what_is_no_verdict_is_the_verifiers_error() -> None:
    def untyped(response: str, answer: str, *, finished: bool) -> Any:
        return response == answer

    (verdict,) = verify_batch(untyped, ["1"], ["1"], [True])
    assert verdict.error == "TypeError: the verifier returned a bool, it must be a Verdict"
    with pytest.raises(TypeError, match="correct is 1; a verdict needs True or False"):
        Verdict(correct=1, parsed=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="grade 0 with correct=True"):
        Verdict(correct=True, parsed=True, grade=0)


def test_the_score_without_a_grade_is_right_or_wrong() -> None:
    assert Verdict(True, True).score == 1.0
    assert Verdict(False, False).score == 0.0
    assert Verdict(True, True, grade=0.75).score == 0.75


def test_batch_checks_lengths() -> None:
    with pytest.raises(ValueError, match=r"responses \(1\), answers \(2\) and finished \(1\)"):
        verify_batch(get_verifier("math"), ["a"], ["1", "2"], [True])
    assert verify_batch(get_verifier("math"), [], [], []) == []


@pytest.mark.parametrize("name", ["math", "coin_flip", "list_answers"])
def test_verifiers_can_be_sent_to_a_process(name: str) -> None:
    verifier = get_verifier(name)
    again = pickle.loads(pickle.dumps(verifier))
    assert again("Answer: 1", "1", finished=True) == verifier("Answer: 1", "1", finished=True)
