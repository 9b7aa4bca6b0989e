# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a verifier says about one response."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Outcome of one grading.

    correct: the response's final answer equals the reference answer; of a graded response, the
        grade is enough for the task.
    parsed: a final answer was found. False for no, an empty or an unfinished answer.
    timeout: the comparison was given up; never True together with correct.
    extracted: the final answer as written, None when there is none.
    error: the exception a verifier raised on this case, None in the normal case.
    grade: share of full credit in [0, 1], from a verifier that knows more than right and wrong.

    Raises TypeError or ValueError for a grade that is no such number (NaN too), one that
    contradicts ``correct`` (0 is never correct, 1 always is), and a ``correct`` that is no bool.
    """

    correct: bool
    parsed: bool
    timeout: bool = False
    extracted: str | None = None
    error: str | None = None
    grade: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.correct, bool):
            raise TypeError(f"correct is {self.correct!r}; a verdict needs True or False")
        if self.grade is None:
            return
        check_grade(self.grade)
        if self.grade == (0 if self.correct else 1):
            raise ValueError(
                f"grade {self.grade:g} with correct={self.correct}: 0 is never correct and 1 "
                "always is; set correct by a threshold in (0, 1]"
            )

    @property
    def score(self) -> float:
        """The grade; without one 1 for correct and 0 for wrong."""
        return float(self.correct if self.grade is None else self.grade)


def check_grade(grade: object) -> None:
    """Raise TypeError or ValueError unless ``grade`` is a number in [0, 1]."""
    if isinstance(grade, bool) or not isinstance(grade, int | float):
        raise TypeError(f"grade is {grade!r} ({type(grade).__name__}); give a float in [0, 1]")
    if not 0 <= grade <= 1:  # NaN neither
        raise ValueError(f"grade is {grade!r}; it must lie in [0, 1]: divide by the full marks")
