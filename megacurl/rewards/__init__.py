# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Grading of responses: extraction of the final answer, exact comparison, verifiers by name."""

from __future__ import annotations

from megacurl.rewards.exact import answers_equal
from megacurl.rewards.extract import extract_answer
from megacurl.rewards.registry import Verifier, get_verifier, register_verifier, verifier_names
from megacurl.rewards.symbolic import close_workers
from megacurl.rewards.verdict import Verdict
from megacurl.rewards.verify import verify_batch

__all__ = [
    "Verdict",
    "Verifier",
    "answers_equal",
    "close_workers",
    "extract_answer",
    "get_verifier",
    "register_verifier",
    "verifier_names",
    "verify_batch",
]
