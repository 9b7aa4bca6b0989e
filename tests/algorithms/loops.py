# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The formulas once more, as loops over Python floats: what the packed functions must equal."""

from __future__ import annotations

import math
from collections.abc import Sequence

Rows = list[list[float]]
"""The numbers at the valid tokens of every response."""


def gae(
    values: Sequence[float], rewards: Sequence[float], *, gamma: float, lam: float, end: float
) -> list[float]:
    """Advantages of one response whose last state is worth ``end``."""
    advantages: list[float] = []
    after, running = end, 0.0
    for value, reward in zip(reversed(values), reversed(rewards), strict=True):
        running = reward + gamma * after - value + gamma * lam * running
        after = value
        advantages.insert(0, running)
    return advantages


def last_only(values: Sequence[float], reward: float) -> list[float]:
    """Token rewards of a response that is judged at its end."""
    return [0.0] * (len(values) - 1) + [reward] if values else []


def adaptive_lambda(length: int, alpha: float) -> float:
    """VAPO's lambda of a response."""
    return max(1 - 1 / (alpha * length), 0.0) if length else 0.0


def mean(numbers: Sequence[float]) -> float:
    """0 for no numbers."""
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


def variance(numbers: Sequence[float], ddof: int) -> float:
    """0 for fewer than ddof + 1 numbers."""
    if len(numbers) <= ddof:
        return 0.0
    middle = mean(numbers)
    return math.fsum((x - middle) ** 2 for x in numbers) / (len(numbers) - ddof)


def grpo(rewards: Sequence[float], group: Sequence[int], *, std: str, eps: float) -> list[float]:
    """Advantage of every response."""
    found = []
    for reward, question in zip(rewards, group, strict=True):
        peers = [r for r, g in zip(rewards, group, strict=True) if g == question]
        gap = 0.0 if len(set(peers)) == 1 else reward - mean(peers)
        spread = math.sqrt(variance(peers, {"sample": 1, "population": 0}.get(std, 0)))
        found.append(gap if std == "none" else gap / (spread + eps))
    return found


def rloo(rewards: Sequence[float], group: Sequence[int]) -> list[float]:
    """Distance of every response to the mean of the others of its group."""
    found = []
    for i, (reward, question) in enumerate(zip(rewards, group, strict=True)):
        others = [rewards[j] for j, g in enumerate(group) if g == question and j != i]
        found.append(reward - mean(others) if others else 0.0)
    return found


def peer_means(x: Sequence[float], key: Sequence[object], kept: Sequence[bool]) -> list[float]:
    """For every response the mean over the kept ones with its key."""
    return [
        mean([y for y, other, k in zip(x, key, kept, strict=True) if k and other == own])
        for own in key
    ]


def sigmoid(x: float) -> float:
    """Of any size of x."""
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def w_s(
    spread: float,
    middle: float,
    score: float,
    *,
    alphas: tuple[float, float],
    lambdas: tuple[float, float],
    direction: str,
    scale: str,
) -> float:
    """Eq. 15 for score 1, Eq. 16 for score 0, mixed in between; pairs are (correct, wrong)."""
    gap = spread - middle
    if scale == "relative":
        gap = gap / middle if middle > 0 else 0.0
    gap = -gap if direction == "prose" else gap
    right = 1 + alphas[0] * sigmoid(lambdas[0] * gap)
    wrong = 1 - alphas[1] * sigmoid(-lambdas[1] * gap)
    return score * right + (1 - score) * wrong


def w_d(rho: float, shape: tuple[float, float, float, float], bottleneck: bool) -> float:
    """Eq. 25, or 26 in the bottleneck."""
    k1, c1, k2, c2 = shape
    weight = 2 * sigmoid(k1 * (rho - c1)) * sigmoid(-k2 * (rho - c2))
    return weight * (1 - rho * rho) if bottleneck else weight


def policy(
    exponent: float,
    advantage: float,
    *,
    low: float,
    high: float,
    dual: float | None,
    clamp: float = 20.0,
) -> tuple[float, float]:
    """Loss of a token and its slope by the log-prob."""
    ratio = math.exp(min(max(exponent, -clamp), clamp))
    loss, slope = -ratio * advantage, -ratio * advantage
    if advantage > 0 and ratio > 1 + high:
        loss, slope = -(1 + high) * advantage, 0.0
    if advantage < 0 and ratio < 1 - low:
        loss, slope = -(1 - low) * advantage, 0.0
    if dual is not None and advantage < 0 and ratio > dual:
        loss, slope = -dual * advantage, 0.0
    return loss, slope if abs(exponent) <= clamp else 0.0


def value(
    found: float, target: float, old: float, *, clip: float | None, half: bool
) -> tuple[float, float]:
    """Loss of a token and its slope by the value."""
    factor = 0.5 if half else 1.0
    error = (found - target) ** 2
    if clip is not None:
        other = (min(max(found, old - clip), old + clip) - target) ** 2
        if other > error:
            return factor * other, 0.0
    return factor * error, 2 * factor * (found - target)


def kl(gap: float, estimator: str, clamp: float = 20.0) -> tuple[float, float]:
    """Estimate for a log ratio and its slope."""
    x = min(max(gap, -clamp), clamp)
    estimate, slope = {
        "k1": (x, 1.0),
        "k2": (0.5 * x * x, x),
        "k3": (math.exp(-x) + x - 1, 1 - math.exp(-x)),
    }[estimator]
    return estimate, slope if abs(gap) <= clamp else 0.0


def importance(
    rows: Rows, *, kind: str, level: str, low: float, high: float, clamp: float = 20.0
) -> Rows:
    """Weights of the tokens from their log ratios."""

    def weigh(exponent: float) -> float:
        weight = math.exp(min(max(exponent, -clamp), clamp))
        if kind == "tis":
            return min(max(weight, low), high)
        return 0.0 if kind == "icepop" and not low <= weight <= high else weight

    over = {"token": list, "sequence": _sums, "geometric": _means}[level]
    return [[weigh(x) for x in over(row)] for row in rows]


def _sums(row: Sequence[float]) -> list[float]:
    return [math.fsum(row)] * len(row)


def _means(row: Sequence[float]) -> list[float]:
    return [mean(row)] * len(row)


def coefficients(
    lengths: Sequence[int], group: Sequence[int], mode: str, limit: int
) -> list[float]:
    """The coefficient of each response's tokens, by the definitions of the modes."""
    present = [n > 0 for n in lengths]
    total, count = sum(lengths), sum(present)
    prompts = len({g for g, p in zip(group, present, strict=True) if p})
    of_prompt = {g: sum(n for n, h in zip(lengths, group, strict=True) if h == g) for g in group}
    if total == 0:
        return [0.0] * len(lengths)
    divisors = {
        "token-mean": [total for _ in lengths],
        "seq-mean-token-mean": [count * n for n in lengths],
        "seq-mean-token-sum": [count for _ in lengths],
        "seq-mean-token-sum-norm": [count * limit for _ in lengths],
        "token-sum-norm": [limit for _ in lengths],
        "prompt-mean-token-mean": [prompts * of_prompt[g] for g in group],
    }[mode]
    return [1 / d if n else 0.0 for d, n in zip(divisors, lengths, strict=True)]
