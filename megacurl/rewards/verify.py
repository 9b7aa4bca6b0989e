# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Grades a batch; one bad case never stops the run."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from megacurl.rewards.registry import Verifier
from megacurl.rewards.verdict import Verdict

logger = logging.getLogger(__name__)


def verify_batch(
    verifier: Verifier,
    responses: Sequence[str],
    answers: Sequence[str],
    finished: Sequence[bool],
) -> list[Verdict]:
    """One verdict a response, in order.

    A verifier that raises, or returns no Verdict (one with a grade outside [0, 1] cannot be made),
    yields a wrong, unparsed verdict with `error` set; the first such case of a batch is logged in
    full, with the number of them. Raises ValueError when the three lists differ in length.
    """
    if not len(responses) == len(answers) == len(finished):
        raise ValueError(
            f"responses ({len(responses)}), answers ({len(answers)}) and finished "
            f"({len(finished)}) must have one entry for each rollout"
        )
    verdicts: list[Verdict] = []
    failed: list[int] = []
    for index, case in enumerate(zip(responses, answers, finished, strict=True)):
        response, answer, done = case
        try:
            verdicts.append(_checked(verifier(response, answer, finished=done)))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            verdicts.append(Verdict(correct=False, parsed=False, error=problem))
            failed.append(index)
    if failed:
        first = failed[0]
        logger.error(
            "the verifier raised on %d of %d responses, graded wrong; first one: %s "
            "(answer %r, end of response %r)",
            len(failed), len(responses), verdicts[first].error,
            answers[first][:200], responses[first][-400:],
        )  # fmt: skip
    return verdicts


def _checked(verdict: object) -> Verdict:
    """Verifiers are other people's code, and not all of it is typed."""
    if not isinstance(verdict, Verdict):
        raise TypeError(f"the verifier returned a {type(verdict).__name__}, it must be a Verdict")
    return verdict
