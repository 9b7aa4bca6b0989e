# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""102 hard inputs, each with the expected verdict (fixtures/rewards/grader.jsonl)."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from megacurl.rewards import get_verifier

FILE = Path(__file__).parents[1] / "fixtures/rewards/grader.jsonl"

# Equal by algebra only: surds, split fraction, factored polynomial, logarithms, inequality. They
# are for a symbolic verifier; a case that starts to pass must be taken off this list.
NEEDS_ALGEBRA = {"g114", "g128", "g130", "g132", "g148"}
# Policy (docs/rewards.md): only the last box counts, so one box for each root is not a list.
DECIDED_OTHERWISE = {"g140"}


def cases() -> list[dict[str, Any]]:
    with FILE.open("rb") as file:
        return [json.loads(line) for line in file]


def graded() -> dict[str, bool]:
    verifier = get_verifier("math")
    return {
        c["id"]: verifier(c["response"], c["ground_truth"], finished=True).correct for c in cases()
    }


def test_exactly_the_named_cases_are_missed() -> None:
    verdicts = graded()
    assert len(verdicts) == 102
    missed = {c["id"] for c in cases() if verdicts[c["id"]] != c["expected"]}
    assert missed == NEEDS_ALGEBRA | DECIDED_OTHERWISE


def test_no_wrong_answer_is_paid() -> None:
    verdicts = graded()
    assert [c["id"] for c in cases() if verdicts[c["id"]] and not c["expected"]] == []


def test_a_thread_gives_the_same_verdicts() -> None:
    """Graders that limit their time with SIGALRM give 0 for everything outside the main thread."""
    found: list[dict[str, bool]] = []
    workers = [threading.Thread(target=lambda: found.append(graded())) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert found == [graded()] * 3
