# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A verifier with every outcome, and a training run that is judged by it."""

from __future__ import annotations

from megacurl.config.schema import Config
from megacurl.rewards.registry import register_verifier
from megacurl.rewards.verdict import Verdict
from tests import jobs

ERROR = "ZeroDivisionError: the reference answer is 0"
OUTCOMES = {
    "2": Verdict(correct=True, parsed=True, extracted="2"),
    "4": Verdict(correct=False, parsed=False),
    "6": Verdict(correct=False, parsed=True, timeout=True, extracted="x"),
}


@register_verifier("every_outcome")
def every_outcome(response: str, answer: str, *, finished: bool) -> Verdict:
    """Decide by the reference answer alone, and raise where that is 0."""
    if answer == "0":
        raise ZeroDivisionError("the reference answer is 0")
    return OUTCOMES.get(answer, Verdict(correct=False, parsed=True, extracted="1"))


def run_training(config: Config) -> None:
    """Train; a rank that runs this knows the verifier, because it imported the module."""
    jobs.run_training(config)
