# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Tables of what peers.py measured: speed, ratios by round, learning curves and their noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev, variance

from peers_plan import Contender, PeerBench, Training

BASE = Contender("trl", 1)
GOALS = {Contender("megacurl", 1): 1.5, Contender("megacurl", 2): 2.5}
WINDOWS = 5
# Two-sided 95% quantiles of Student's t by degrees of freedom.
_T95 = {2: 4.303, 4: 2.776, 6: 2.447, 8: 2.306, 10: 2.228, 12: 2.179, 14: 2.145, 16: 2.120}


def contenders_of(trainings: Sequence[Training]) -> list[Contender]:
    """In the order in which they took turns."""
    return list(dict.fromkeys(t.contender for t in trainings))


def of(trainings: Sequence[Training], contender: Contender) -> list[Training]:
    """A contender's trainings, one a seed."""
    return [t for t in trainings if t.contender == contender]


def rounds_of(trainings: Sequence[Training], contender: Contender) -> list[float]:
    """Mean seconds of a step in every round but the first of a training, in which caches fill."""
    return [
        fmean(step.seconds for step in turn)
        for training in of(trainings, contender)
        for turn in training.turns[1:]
    ]


def ratios(trainings: Sequence[Training], contender: Contender) -> list[float]:
    """Samples per second of a contender over those of TRL in one process, round by round, sorted.

    A round is short, so what slows one down has most likely slowed down the other.
    """
    own, base = (rounds_of(trainings, c) for c in (contender, BASE))
    return sorted(theirs / ours for ours, theirs in zip(own, base, strict=True))


def speed_table(bench: PeerBench, trainings: Sequence[Training]) -> list[str]:
    """Markdown: seconds a step and samples per second."""
    lines = [
        "| | s a step | samples/s | against TRL, 1 process | goal | response length |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for contender in contenders_of(trainings):
        seconds = sorted(rounds_of(trainings, contender))
        middle = median(seconds)
        length = fmean(s.length for t in of(trainings, contender) for s in t.steps)
        ratio = goal = ""
        if of(trainings, BASE):
            by_round = ratios(trainings, contender)
            ratio = f"{median(by_round):.2f}x ({by_round[0]:.2f} to {by_round[-1]:.2f})"
            if contender in GOALS:
                met = median(by_round) >= GOALS[contender]
                goal = f"{GOALS[contender]}x: {'met' if met else 'missed'}"
        lines.append(
            f"| {contender.label} | {middle:.2f} ({seconds[0]:.2f} to {seconds[-1]:.2f}) | "
            f"{bench.responses / middle:.0f} | {ratio} | {goal} | {length:.1f} |"
        )
    return lines


@dataclass(frozen=True)
class Noise:
    """Means over seeds of two groups, their difference, and half of its 95% interval (Student's t
    with pooled variance; infinite with one seed)."""

    first: float
    second: float
    half: float

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> Noise:
        """Of as many seeds each."""
        seeds = len(first)
        half = math.inf
        if seeds > 1:
            error = math.sqrt((variance(first) + variance(second)) / seeds)
            half = _T95.get(2 * (seeds - 1), 2.0) * error
        return cls(fmean(first), fmean(second), half)

    @property
    def difference(self) -> float:
        """The first's above the second's."""
        return self.first - self.second

    @property
    def verdict(self) -> str:
        """In words."""
        if math.isinf(self.half):
            return f"{self.difference:+.3f}; one seed shows no noise"
        within = "within" if abs(self.difference) <= self.half else "outside of"
        return f"{self.difference:+.3f} ± {self.half:.3f}: {within} noise"


def windows(bench: PeerBench) -> list[range]:
    """The steps of the run in parts of about equal length."""
    bounds = [i * bench.steps // WINDOWS for i in range(WINDOWS + 1)]
    parts = [range(a, b) for a, b in itertools.pairwise(bounds)]
    return [part for part in parts if len(part)]


def curve_table(bench: PeerBench, trainings: Sequence[Training], before: float) -> list[str]:
    """Markdown: accuracy of the sampled responses, part by part, and on the held-out questions."""
    parts = windows(bench)
    titles = [f"steps {part.start + 1}-{part.stop}" for part in parts]
    header = ["", *titles, "all steps", f"held out (before: {before:.3f})"]
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for contender in contenders_of(trainings):
        runs = of(trainings, contender)
        cells = [spread([mean_accuracy(t, part) for t in runs]) for part in parts]
        cells.append(spread([mean_accuracy(t, range(bench.steps)) for t in runs]))
        cells.append(spread([t.heldout for t in runs]))
        lines.append("| " + " | ".join([contender.label, *cells]) + " |")
    return lines


def verdicts(bench: PeerBench, trainings: Sequence[Training]) -> list[str]:
    """Whether the curves of both libraries in one process differ by more than seeds do."""
    ours, theirs = (of(trainings, c) for c in (Contender("megacurl", 1), BASE))
    if not ours or not theirs:
        return []
    figures: dict[str, Callable[[Training], float]] = {
        "accuracy over all steps": lambda t: mean_accuracy(t, range(bench.steps)),
        "accuracy on the held-out questions": lambda t: t.heldout,
    }
    lines = []
    for name, figure in figures.items():
        noise = Noise.of([figure(t) for t in ours], [figure(t) for t in theirs])
        lines.append(f"* {name}, MegaCURL - TRL: {noise.verdict}")
    return lines


def mean_accuracy(training: Training, part: range) -> float:
    """Of the responses sampled in the steps of ``part``."""
    return fmean(training.steps[i].accuracy for i in part)


def spread(values: Sequence[float]) -> str:
    """Mean and standard deviation over seeds."""
    deviation = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{deviation}"


def report(
    bench: PeerBench, trainings: Sequence[Training], before: float, machine: str, versions: str
) -> str:
    """The section of docs/performance.md."""
    seeds = len({t.seed for t in trainings})
    lines = [
        f"{machine}; {versions}; fp32, {bench.threads} thread(s) a process, {bench.clock} clock, "
        f"{bench.prompts} prompts x {bench.samples} samples, {bench.steps} steps, {seeds} seed(s). "
        "Seconds and ratios: median of the turns, in brackets the least and the largest.",
        "",
        *speed_table(bench, trainings),
        "",
        "Accuracy of the sampled responses, and on the held-out questions after the last step: "
        "mean and standard deviation over seeds.",
        "",
        *curve_table(bench, trainings, before),
    ]
    found = verdicts(bench, trainings)
    return "\n".join([*lines, *([""] if found else []), *found, ""])
