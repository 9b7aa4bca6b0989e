# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The scores of one benchmark with their confidence intervals, counted from its responses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from megacurl.evaluation.benchmark import UNLABELLED, default_pass_ks, group_by_level
from megacurl.evaluation.estimators import pass_at_k
from megacurl.evaluation.intervals import question_interval
from megacurl.evaluation.majority import majority_correct
from megacurl.evaluation.overlap import TRAINING_SET, Overlap
from megacurl.evaluation.responses import Response
from megacurl.evaluation.result import EvalResult


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over ``questions`` questions and its 95% interval [low, high], all in 0..1."""

    name: str
    questions: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SetReport:
    """All that is known of one benchmark.

    Attributes:
        result: correct counts by question.
        scores: ``avg@k``, ``score@k`` if some responses have partial credit, ``pass@j``, ``maj@k``,
            ``level/<label>``; the names are those of the metrics ``eval/<set>/...``.
        without_overlap: avg@k on the questions that the training set does not hold, if known.
        unparsed, truncated: shares of responses without an answer, and cut at the limit.
        tokens_mean: tokens of a response.
    """

    result: EvalResult
    scores: tuple[Score, ...]
    overlap: Overlap | None
    without_overlap: Score | None
    unparsed: float
    truncated: float
    tokens_mean: float

    def metrics(self) -> dict[str, float]:
        """Schema metrics."""
        return {f"eval/{self.result.set_name}/{s.name}": s.value for s in self.scores}

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON-able values."""
        overlap = None
        if self.overlap is not None:
            overlap = {
                "training_set": TRAINING_SET,
                **asdict(self.overlap),
                "ids": sorted(self.overlap.ids),
                "avg_without": asdict(self.without_overlap) if self.without_overlap else None,
            }
        return {
            "questions": len(self.result.question_ids),
            "k": self.result.k,
            "scores": {score.name: _json_score(score) for score in self.scores},
            "unparsed": self.unparsed,
            "truncated": self.truncated,
            "tokens_mean": self.tokens_mean,
            "overlap": overlap,
            "result": asdict(self.result),
        }


def make_report(
    set_name: str,
    groups: Sequence[Sequence[Response]],
    levels: Sequence[str | None],
    *,
    step: int,
    seed: int,
    overlap: Overlap | None = None,
) -> SetReport:
    """Count the [questions][k] responses of a set.

    Args:
        levels: [questions] difficulty labels or None.
        step: RL step of the weights.
        seed: of the intervals' resampling.

    Raises ValueError as :func:`megacurl.evaluation.benchmark.score_eval` does.
    """
    result = EvalResult.from_verdicts(
        set_name,
        [group[0].id for group in groups if group],
        [[response.correct for response in group] for group in groups],
        levels,
        step=step,
        weights_version=0,
    )
    responses = [response for group in groups for response in group]
    return SetReport(
        result=result,
        scores=tuple(_scores(result, groups, seed)),
        overlap=overlap,
        without_overlap=_without(result, overlap, seed),
        unparsed=sum(r.extracted is None for r in responses) / len(responses),
        truncated=sum(r.finish_reason == "length" for r in responses) / len(responses),
        tokens_mean=sum(r.tokens for r in responses) / len(responses),
    )


def _scores(result: EvalResult, groups: Sequence[Sequence[Response]], seed: int) -> list[Score]:
    k, counts = result.k, result.num_correct
    scores = [_score(f"avg@{k}", [count / k for count in counts], seed)]
    if any(r.score != r.correct for group in groups for r in group):
        means = [sum(r.score for r in group) / k for group in groups]
        scores.append(_score(f"score@{k}", means, seed))
    for j in default_pass_ks(k):
        scores.append(_score(f"pass@{j}", [pass_at_k([c], k, j) for c in counts], seed))
    votes = [majority_correct([r.extracted for r in g], [r.correct for r in g]) for g in groups]
    scores.append(_score(f"maj@{k}", [float(vote) for vote in votes], seed))
    by_level = group_by_level(result.set_name, counts, result.levels)
    if set(by_level) != {UNLABELLED}:
        for label, part in by_level.items():
            scores.append(_score(f"level/{label}", [count / k for count in part], seed))
    return scores


def _without(result: EvalResult, overlap: Overlap | None, seed: int) -> Score | None:
    if overlap is None or not overlap.ids:
        return None
    rest = [
        count / result.k
        for question, count in zip(result.question_ids, result.num_correct, strict=True)
        if question not in overlap.ids
    ]
    return _score(f"avg@{result.k}", rest, seed) if rest else None


def _score(name: str, values: Sequence[float], seed: int) -> Score:
    low, high = question_interval(values, seed)
    return Score(name, len(values), sum(values) / len(values), low, high)


def _json_score(score: Score) -> dict[str, float]:
    return {
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "questions": score.questions,
    }


def format_report(report: SetReport) -> str:
    """The table of a set as aligned plain text, the header first."""
    result = report.result
    rows = [(score.name, score) for score in report.scores]
    if report.without_overlap is not None:
        rows.append((f"avg@{result.k} without {TRAINING_SET}", report.without_overlap))
    header = ("score", "questions", "value", "95% interval")
    cells = [
        header,
        *(
            (name, str(s.questions), f"{s.value:.4f}", f"{s.low:.4f} to {s.high:.4f}")
            for name, s in rows
        ),
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["  ".join([r[0].ljust(widths[0]), *map(str.rjust, r[1:], widths[1:])]) for r in cells]
    title = f"{result.set_name}: {len(result.question_ids)} questions x {result.k} responses"
    tail = (
        f"no answer {report.unparsed:.1%}, truncated {report.truncated:.1%}, "
        f"{report.tokens_mean:.0f} tokens a response"
    )
    return "\n".join([title, *lines, tail])
