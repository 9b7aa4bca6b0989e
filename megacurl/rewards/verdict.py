# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a verifier says about one response."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Outcome of one grading.

    correct: the response's final answer equals the reference answer.
    parsed: a final answer was found. False for no, an empty or an unfinished answer.
    timeout: the comparison was given up; never True together with correct.
    extracted: the final answer as written, None when there is none.
    error: the exception a verifier raised on this case, None in the normal case.
    """

    correct: bool
    parsed: bool
    timeout: bool = False
    extracted: str | None = None
    error: str | None = None
