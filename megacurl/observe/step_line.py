# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One step as one line of plain ASCII text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

_SPLIT = (
    ("gen", "time/generate"),
    ("logp", "time/log_prob"),
    ("train", "time/train"),
    ("sync", "time/sync"),
)


def step_line(step: int, total_steps: int, metrics: Mapping[str, float], eta_s: float) -> str:
    """Return ``step 12/200 | acc 0.531 | ... | ETA 2h03m``; parts without a metric are left out.

    ``eta_s`` is in seconds; NaN leaves it out. Percentages are of ``time/step``, or of all
    measured times when that is missing.
    """
    width = len(str(total_steps))
    parts = [f"step {step:>{width}}/{total_steps}"]

    def add(label: str, name: str, show: Callable[[float], str]) -> None:
        if name in metrics:
            parts.append(f"{label} {show(metrics[name])}".strip())

    add("acc", "rollout/accuracy", "{:.3f}".format)
    add("reward", "rollout/reward_mean", "{:+.3f}".format)
    add("EV", "critic/explained_variance", "{:.3f}".format)
    add("len", "rollout/length_mean", "{:.0f}".format)
    parts.extend(_eval_parts(metrics))
    split = time_split(metrics)
    if split:
        parts.append(" ".join(f"{label} {share:.0%}" for label, share in split.items()))
    add("", "perf/tokens_per_s", lambda rate: f"{short_number(rate)} tok/s")
    add("", "time/step", short_duration)
    if not math.isnan(eta_s):
        parts.append(f"ETA {short_duration(eta_s)}")
    return " | ".join(parts)


def time_split(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the share of generate, log-prob, train and sync in the step; {} without times."""
    phases = (value for name, value in metrics.items() if name.startswith("time/"))
    total = metrics.get("time/step") or sum(phases)
    if not total > 0:
        return {}
    return {label: metrics[name] / total for label, name in _SPLIT if name in metrics}


def short_duration(seconds: float) -> str:
    """Return seconds as ``8.2s``, ``5m07s``, ``2h03m`` or ``3d04h``; ``?`` when not finite."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "m", 60)):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // part_size:02d}{part}"
    return f"{whole // 60}m{whole % 60:02d}s"


def short_number(value: float) -> str:
    """Return a count as ``812``, ``3.1k`` or ``2.4M``."""
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}{suffix}"
    return f"{value:.0f}"


def _eval_parts(metrics: Mapping[str, float]) -> list[str]:
    parts = []
    for name, value in metrics.items():
        if name.startswith("eval/") and "/avg@" in name:
            _, set_name, score = name.split("/")
            parts.append(f"{set_name} {score} {value:.3f}")
    return parts
