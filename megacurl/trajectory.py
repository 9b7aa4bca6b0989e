# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One sampled response with its verdict: what every rank knows about a step's rollout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Trajectory:
    """A prompt, a response and how it was judged.

    prompt_id: stable name of the question; group: its number in the step's batch.
    log_probs: of the response tokens under the engine that sampled them, at its temperature.
    correct, score, parsed, timeout, error: the verifier's words (see ``Verdict``).
    reward: what the advantage estimator sees, made from the score.
    """

    prompt_id: str
    group: int
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    truncated: bool
    version: int
    correct: bool
    score: float
    reward: float
    parsed: bool
    timeout: bool
    error: str | None = None

    @property
    def num_tokens(self) -> int:
        """Prompt and response."""
        return len(self.prompt_ids) + len(self.response_ids)
