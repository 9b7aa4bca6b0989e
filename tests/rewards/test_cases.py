# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Hard inputs, each with the expected verdict; MEGACURL_GRADER_CASES names another file of them."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from megacurl.rewards import Verdict, close_workers, get_verifier

ROOT = Path(__file__).parents[2]
FILE = Path(os.environ.get("MEGACURL_GRADER_CASES") or ROOT / "tests/fixtures/rewards/grader.jsonl")
CASE_SECONDS = 3.0
Run = dict[str, tuple[Verdict, float]]


def cases() -> list[dict[str, Any]]:
    with FILE.open("rb") as file:
        return [json.loads(line) for line in file]


def decisions() -> dict[str, bool]:
    """The policy table of docs/grading.md: case id -> right."""
    text = (ROOT / "docs/grading.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (g\d+) \|.*\| (right|wrong)\b[^|]*\|$", text, re.MULTILINE)
    return {case: decision == "right" for case, decision in rows}


def graded() -> dict[str, Verdict]:
    verifier = get_verifier("math")
    return {c["id"]: verifier(c["response"], c["ground_truth"], finished=True) for c in cases()}


@pytest.fixture(scope="module")
def first_run() -> Iterator[Run]:
    """Verdict and seconds of each case; a worker process is ready before and gone afterwards."""
    verifier, run = get_verifier("math"), {}
    assert verifier("\\boxed{\\sqrt{20}}", "2\\sqrt{5}", finished=True).correct
    for case in cases():
        start = time.monotonic()
        verdict = verifier(case["response"], case["ground_truth"], finished=True)
        run[case["id"]] = verdict, time.monotonic() - start
    yield run
    close_workers()


def test_every_firm_case_is_right_and_policy_cases_are_as_decided(first_run: Run) -> None:
    decided, wrong = decisions(), {}
    assert len(decided) > 20 and len(first_run) >= 100
    for case in cases():
        expected = case["expected"]
        if case.get("policy"):
            expected = decided.get(case["id"], expected)
        if first_run[case["id"]][0].correct != expected:
            wrong[case["id"]] = case["why"]
    assert wrong == {}


def test_policy_cases_of_the_shipped_file_are_all_in_the_table() -> None:
    policy = {c["id"] for c in cases() if c.get("policy")}
    if "MEGACURL_GRADER_CASES" not in os.environ:
        assert policy <= set(decisions())
    # A firm case must not be argued away in the documentation.
    assert {c["id"] for c in cases()} & set(decisions()) <= policy


def test_no_case_takes_long_and_none_is_given_up(first_run: Run) -> None:
    # On a machine that others use too, only a share of the time is ours.
    share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert {case: s for case, (_, s) in first_run.items() if s > CASE_SECONDS * share} == {}
    assert [case for case, (verdict, _) in first_run.items() if verdict.timeout] == []


def test_a_thread_gives_the_same_verdicts(first_run: Run) -> None:
    """Graders that limit their time with SIGALRM give 0 for everything outside the main thread."""
    found: list[dict[str, Verdict]] = []
    threads = [threading.Thread(target=lambda: found.append(graded())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == [{case: verdict for case, (verdict, _) in first_run.items()}] * 3
