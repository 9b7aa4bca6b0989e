# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The one table of metric names; whatever is logged must stand here, so dashboards stay stable.

A name may hold ``<field>`` parts (``<k>`` is a positive integer, every other field one path
segment without ``/`` or ``@``) and may end in ``*`` (anything). docs/metrics.md is written by
``python -m megacurl.observe.schema > docs/metrics.md``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from megacurl.utils.names import nearest_hint


class UnknownMetricError(ValueError):
    """A metric name that the schema does not know."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the schema.

    Attributes:
        name: exact name, or a pattern with ``<field>`` parts or a final ``*``.
        unit: what one unit of the number is; ``1`` marks a plain ratio or score.
        description: one sentence.
    """

    name: str
    unit: str
    description: str

    @property
    def is_pattern(self) -> bool:
        """Whether the row stands for a family of names."""
        return "<" in self.name or self.name.endswith("*")

    def matches(self, name: str) -> bool:
        """Whether ``name`` is this metric or one of its family."""
        return _pattern(self.name).fullmatch(name) is not None


METRICS: tuple[Metric, ...] = (
    Metric("step", "steps", "RL step the row belongs to; step 0 is before the first update."),
    Metric("rollout/accuracy", "fraction", "Trajectories of the step judged correct."),
    Metric("rollout/score_mean", "fraction", "Mean score: the accuracy, unless it is graded."),
    Metric("rollout/reward_mean", "reward", "Mean reward of a trajectory."),
    Metric("rollout/length_mean", "tokens", "Mean response length."),
    Metric("rollout/mixed_groups", "fraction", "Questions whose responses differ in score."),
    Metric("rollout/truncated", "fraction", "Responses cut by the length limit."),
    Metric("actor/loss", "1", "Total actor loss, averaged over the updates of the step."),
    Metric("actor/policy_loss", "1", "Clipped policy-gradient part of the actor loss."),
    Metric("actor/positive_lm_loss", "nats/token", "Mean NLL of the correct trajectories."),
    Metric("actor/grad_norm", "L2 norm", "Actor gradient norm before clipping."),
    Metric(
        "actor/ratio_dev_first",
        "1",
        "max |ratio - 1| before the first update; above rounding, old and new log-probs disagree.",
    ),
    Metric("actor/clip_fraction", "fraction", "Trained tokens whose ratio was clipped."),
    Metric("actor/entropy", "nats/token", "Policy entropy at the sampling temperature."),
    Metric("actor/approx_kl", "nats/token", "Estimated KL from the rollout policy to the actor."),
    Metric("actor/lr", "1", "Actor learning rate of the last update."),
    Metric("critic/loss", "reward^2", "Critic loss, averaged over the updates of the step."),
    Metric("critic/mse", "reward^2", "Mean squared error of the values against the returns."),
    Metric("critic/grad_norm", "L2 norm", "Critic gradient norm before clipping."),
    Metric(
        "critic/explained_variance",
        "1",
        "1 - Var(returns - values) / Var(returns); 1 is perfect, at or below 0 useless.",
    ),
    Metric(
        "critic/ev_position/<quarter>",
        "1",
        "The same of one quarter of each response's tokens, q1 to q4; absent if targets are equal.",
    ),
    Metric(
        "critic/ev_difficulty/<level>",
        "1",
        "The same of the hard, medium or easy questions; absent if targets are equal, or none.",
    ),
    Metric(
        "critic/brier",
        "1",
        "Mean (p - y)^2 of the predicted and the actual success of a response, before it begins.",
    ),
    Metric("critic/brier_end", "1", "The same with the value before the response's last token."),
    Metric(
        "critic/brier_skill",
        "1",
        "1 - brier / that of predicting the mean; 0 knows only the mean; absent if all are equal.",
    ),
    Metric(
        "critic/calibration_error",
        "fraction",
        "Mean |reliability| over the responses: expected calibration error.",
    ),
    Metric(
        "critic/reliability/<decile>",
        "fraction",
        "Actual minus predicted success where <decile> percent are predicted; absent if empty.",
    ),
    Metric("critic/reliability_share/<decile>", "fraction", "Responses in that decile."),
    Metric("critic/lr", "1", "Critic learning rate of the last update."),
    Metric("cvpo/w_s_mean", "1", "Mean stochasticity weight W_S over the trajectories."),
    Metric("cvpo/w_d_mean", "1", "Mean difficulty weight W_D over the trajectories."),
    Metric("cvpo/sigma_mean", "reward", "Mean sigma: spread of the values along a trajectory."),
    Metric(
        "cvpo/sigma_entropy_corr",
        "1",
        "Correlation of a response's sigma and mean token entropy; absent if one is constant.",
    ),
    Metric(
        "cvpo/sigma_entropy_corr_within",
        "1",
        "The same of their deviations from the means of the question, which is what W_S looks at.",
    ),
    Metric(
        "cvpo/sigma_entropy_drift",
        "1",
        "Mean sigma_entropy_corr of the last 10 steps minus that of the first 10 after warm-up.",
    ),
    Metric(
        "cvpo/weight_ess",
        "fraction",
        "Effective sample size of W_S W_D over the responses; absent if all weights are 0.",
    ),
    Metric(
        "advantage/mass/<part>",
        "fraction",
        "Share of the sum of |advantage| on correct, wrong, hard, medium or easy; absent if 0.",
    ),
    Metric("curriculum/phase", "0 or 1", "CVPO phase: 0 early, 1 bottleneck."),
    Metric("curriculum/*", "see name", "State of the active curriculum (posteriors, bank)."),
    Metric("sampling/responses", "responses", "Responses sampled in the step, trained on or not."),
    Metric("sampling/accuracy", "fraction", "Of all of those judged correct."),
    Metric("sampling/*", "see name", "State of the sampling rule (kept, shortfall, bank)."),
    Metric("sync/version", "syncs", "Weights version that the rollout engine holds."),
    Metric(
        "sync/logprob_gap",
        "nats/token",
        "Mean |trainer - engine| log-prob of the sampled tokens; rounding, unless there is a lag.",
    ),
    Metric("mismatch/kl", "nats/token", "Mean of engine - trainer: KL from the one to the other."),
    Metric("mismatch/max_gap", "nats", "Largest |trainer - engine| log-prob of a token."),
    Metric("mismatch/ess", "fraction", "Effective sample size of the weights trainer/engine."),
    Metric("mismatch/tis_clipped", "fraction", "Tokens whose weight exceeds --tis-cap."),
    Metric("reward/unparsed", "fraction", "Responses without a readable final answer."),
    Metric("reward/timeout", "fraction", "Responses whose check was stopped at its deadline."),
    Metric("reward/error", "fraction", "Responses on which the verifier failed; graded wrong."),
    Metric("eval/<set>/avg@<k>", "fraction", "Mean accuracy over k samples a question."),
    Metric("eval/<set>/score@<k>", "fraction", "Mean score, where some have partial credit."),
    Metric(
        "eval/<set>/pass@<k>", "fraction", "Chance that one of k samples is correct (unbiased)."
    ),
    Metric("eval/<set>/maj@<k>", "fraction", "Questions whose most frequent answer is correct."),
    Metric("eval/<set>/level/<level>", "fraction", "Mean accuracy on the questions of one level."),
    Metric("time/generate", "s", "Generating the rollouts."),
    Metric(
        "time/log_prob", "s", "Values, reference log-probs, and old ones where the update has none."
    ),
    Metric("time/train", "s", "Critic and actor updates."),
    Metric("time/sync", "s", "Moving the weights into the rollout engine."),
    Metric("time/eval", "s", "Evaluation."),
    Metric("time/checkpoint", "s", "Saving the checkpoint."),
    Metric("time/step", "s", "The whole step."),
    Metric(
        "compute/total",
        "device-seconds",
        "Seconds x devices of all steps so far, resumed runs included; for the x axis.",
    ),
    Metric("compute/<phase>", "device-seconds", "The same of one phase, named as in time/."),
    Metric("perf/tokens_per_s", "tokens/s", "Prompt and response tokens of the step per second."),
    Metric("data/epoch", "epochs", "Passes over the prompt set that have begun, counted from 0."),
    Metric(
        "data/skipped_batches", "batches", "Actor mini-batches of the step with no trainable token."
    ),
)


def find_metric(name: str) -> Metric:
    """Return the row for ``name``; an exact row wins over a pattern.

    Raises UnknownMetricError with the nearest known name.
    """
    metric = _exact().get(name)
    if metric is not None and not metric.is_pattern:
        return metric
    for metric in METRICS:
        if metric.is_pattern and metric.matches(name):
            return metric
    hint = nearest_hint(name, _candidates(name))
    raise UnknownMetricError(
        f"metric {name!r} is not in the schema{hint}; add a row to megacurl/observe/schema.py"
    )


def check_names(names: Iterable[str]) -> None:
    """Raise UnknownMetricError on the first name that the schema does not know."""
    for name in names:
        find_metric(name)


def metrics_markdown() -> str:
    """Return the text of docs/metrics.md."""
    return "\n".join([*_INTRODUCTION, *(_markdown_row(metric) for metric in METRICS), ""])


_INTRODUCTION = (
    "# Metrics",
    "",
    "<!-- Generated: python -m megacurl.observe.schema > docs/metrics.md -->",
    "",
    "Every name a run logs. A name that is not in this table is an error, so dashboards keep",
    "working. In a name, `<k>` is a positive integer, any other `<field>` one path segment, and a",
    "final `*` any text.",
    "",
    "All sinks get the same numbers. `metrics.jsonl` holds one JSON object a step, in step order.",
    "JSON has no NaN and no infinity: such a value is written as `null`, and the object's",
    '`nonfinite` field says what it was, as in `{"step": 3, "actor/loss": null, "nonfinite":',
    '{"actor/loss": "nan"}}`. `megacurl.observe.sinks.jsonl.read_rows` undoes this.',
    "",
    "| name | unit | meaning |",
    "|---|---|---|",
)


def _markdown_row(metric: Metric) -> str:
    cells = (f"`{metric.name}`", metric.unit, metric.description)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


@functools.cache
def _exact() -> dict[str, Metric]:
    return {metric.name: metric for metric in METRICS}


@functools.cache
def _pattern(name: str) -> re.Pattern[str]:
    parts: list[str] = []
    for part in re.split(r"(<\w+>|\*$)", name):
        if part == "<k>":
            parts.append("[1-9][0-9]*")
        elif part == "*":
            parts.append(".+")
        elif part.startswith("<"):
            parts.append("[^/@]+")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts))


def _candidates(name: str) -> Iterator[str]:
    """Known names to compare a wrong one with, fields filled from its own segments."""
    given = name.split("/")
    for metric in METRICS:
        segments = metric.name.split("/")
        for index, segment in enumerate(segments):
            if re.fullmatch(r"<\w+>", segment) and index < len(given):
                segments[index] = given[index]
        yield "/".join(segments)


if __name__ == "__main__":
    print(metrics_markdown(), end="")
