# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A Beta posterior of the accuracy of every question (CVPO section 4.2.2, Eq. 17-22)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class QuestionRecord:
    """What is remembered of one question between its visits."""

    alpha: float
    beta: float
    visits: int
    latest: float
    """Accuracy of its last visit."""
    ema: float
    """Moving average of its accuracies."""

    @property
    def mean(self) -> float:
        """Posterior mean alpha/(alpha + beta)."""
        return self.alpha / (self.alpha + self.beta)


@dataclass(frozen=True)
class PosteriorUpdate:
    """One question's visit: the posterior before and after, and the accuracies around it."""

    successes: int
    attempts: int
    old_mean: float
    """Posterior mean before this visit (the prior's at the first)."""
    mean: float
    delta: float | None
    """Relative change of the mean (Eq. 22); None at the first visit, which has no earlier round."""
    latest: float
    """Accuracy of this visit, s/k."""
    previous: float
    """Accuracy of the visit before (the prior mean at the first)."""
    ema: float
    alpha: float
    beta: float


class BetaTracker:
    """Beta posteriors by question id.

    Args:
        prior: (alpha, beta) of a question never seen; Beta(1, 1) in the paper.
        decay: before each update the counts shrink towards the prior by this factor; 1 is the
            plain conjugate update of Eq. 20/21, 0 forgets all earlier rounds.
        ema: weight of the past in the moving average of accuracies.
    """

    def __init__(
        self, prior: tuple[float, float] = (1.0, 1.0), *, decay: float = 1.0, ema: float = 0.5
    ) -> None:
        if len(prior) != 2 or not (prior[0] > 0 and prior[1] > 0):
            raise ValueError(f"beta_prior is {prior}; give two positive numbers")
        if not 0 <= decay <= 1:
            raise ValueError(f"beta_decay is {decay}; it must lie in [0, 1]")
        if not 0 <= ema < 1:
            raise ValueError(f"wd_ema is {ema}; it must lie in [0, 1)")
        self.prior = (float(prior[0]), float(prior[1]))
        self.decay = decay
        self.ema = ema
        self._records: dict[str, QuestionRecord] = {}

    def __len__(self) -> int:
        return len(self._records)

    @property
    def records(self) -> Mapping[str, QuestionRecord]:
        """Read-only view of every tracked question."""
        return self._records

    def observe(self, counts: Mapping[str, tuple[int, int]]) -> dict[str, PosteriorUpdate]:
        """Update with one round of (successes, attempts) by question id.

        Raises:
            ValueError: for impossible counts; nothing is changed then.
        """
        for question, (successes, attempts) in counts.items():
            if not 0 <= successes <= attempts or attempts == 0:
                raise ValueError(
                    f"question {question!r} has {successes} successes of {attempts} attempts; "
                    "attempts must be positive and successes between 0 and attempts"
                )
        return {q: self._update(q, s, k) for q, (s, k) in counts.items()}

    def _update(self, question: str, successes: int, attempts: int) -> PosteriorUpdate:
        prior_alpha, prior_beta = self.prior
        prior_mean = prior_alpha / (prior_alpha + prior_beta)
        accuracy = successes / attempts
        record = self._records.get(question)
        first = record is None
        if record is None:
            record = QuestionRecord(prior_alpha, prior_beta, 0, prior_mean, accuracy)
            self._records[question] = record
        old_mean, previous = record.mean, record.latest
        kept = self.decay
        record.alpha = kept * record.alpha + (1 - kept) * prior_alpha + successes
        record.beta = kept * record.beta + (1 - kept) * prior_beta + (attempts - successes)
        record.visits += 1
        record.latest = accuracy
        record.ema = self.ema * record.ema + (1 - self.ema) * accuracy
        return PosteriorUpdate(
            successes=successes,
            attempts=attempts,
            old_mean=old_mean,
            mean=record.mean,
            delta=None if first else (record.mean - old_mean) / old_mean,
            latest=accuracy,
            previous=previous,
            ema=record.ema,
            alpha=record.alpha,
            beta=record.beta,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the posteriors as JSON-able columns; numbers survive JSON exactly."""
        records = self._records.values()
        return {
            "ids": list(self._records),
            "alpha": [r.alpha for r in records],
            "beta": [r.beta for r in records],
            "visits": [r.visits for r in records],
            "latest": [r.latest for r in records],
            "ema": [r.ema for r in records],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace the posteriors by those of :meth:`state_dict`.

        Raises:
            ValueError: when a column is missing or has another length; nothing is changed then.
        """
        columns = ("ids", "alpha", "beta", "visits", "latest", "ema")
        missing = [name for name in columns if name not in state]
        if missing:
            raise ValueError(f"the posterior state lacks {missing}; it holds {sorted(state)}")
        lengths = {name: len(state[name]) for name in columns}
        if len(set(lengths.values())) > 1 or len(set(state["ids"])) != lengths["ids"]:
            raise ValueError(f"the posterior state is damaged: ids repeat or columns are {lengths}")
        rows = zip(*(state[name] for name in columns), strict=True)
        self._records = {
            str(q): QuestionRecord(float(a), float(b), int(v), float(latest), float(ema))
            for q, a, b, v, latest, ema in rows
        }

    def metrics(self) -> dict[str, float]:
        """Return how many questions are tracked and the mean of their posterior means."""
        count = len(self._records)
        total = math.fsum(r.mean for r in self._records.values())
        return {"tracked": float(count), "posterior_mean": total / count if count else 0.0}
