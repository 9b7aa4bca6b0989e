# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Verdicts of the original (verl 012542c4, math_dapo.py) on our cases and on random text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from megacurl.rewards import get_verifier

FILE = Path(__file__).parents[1] / "fixtures/rewards/dapo_exact.jsonl"
RECORDED = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", RECORDED)
def test_recorded_verdicts(case: dict[str, Any]) -> None:
    verifier = get_verifier("dapo_exact", strict_box=case["strict_box"])
    for finished in (True, False):
        verdict = verifier(case["response"], case["answer"], finished=finished)
        assert verdict.correct is case["correct"]
        if verdict.parsed:
            assert verdict.extracted == case["prediction"]
        else:
            assert case["prediction"] == "[INVALID]"


@pytest.mark.parametrize(
    ("response", "answer", "right"),
    [
        ("Answer: 42", "42", True), ("so Final ANSWER :\n\n42 \nok", "42", True),
        ("Answer: 1\nAnswer: 42", "42", True), ("Answer: \\boxed{42}", "42", True),
        ("Answer: x = $42$.", "42", True), ("Answer: 1,234", "1234", True),
        ("Answer: 42 \\text{ cm}", "42", True), ("Answer: \\frac12", "\\frac{1}{2}", True),
        ("Answer: 42" + " " * 291, "42", False), ("Answer: 42" + " " * 290, "42", True),
        ("Answer: $x = 42$.", "42", False), ("\\boxed{42}", "42", False),
        ("**Answer:** 42", "42", False), ("Answer：42", "42", False), ("Answer: 42.", "42", False),
        ("Answer: 42.0", "42", False), ("Answer: 042", "42", False), ("Answer: +42", "42", False),
        ("Answer: 3/4", "\\frac{3}{4}", False), ("Answer: \u22127", "-7", False),
    ],
)  # fmt: skip
def test_known_quirks(response: str, answer: str, right: bool) -> None:
    assert get_verifier("dapo_exact")(response, answer, finished=True).correct is right


def test_strict_box_looks_at_the_last_hundred_characters_only() -> None:
    strict = get_verifier("dapo_exact", strict_box=True)
    assert strict("\\boxed{42}" + "." * 90, "42", finished=True).correct
    assert not strict("\\boxed{42}" + "." * 91, "42", finished=True).parsed
    assert not strict("\\boxed{ 42}", "42", finished=True).correct
    assert not strict("\\boxed{42} \\boxed{4", "42", finished=True).parsed
