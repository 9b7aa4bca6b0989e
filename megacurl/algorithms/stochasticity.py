# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""CVPO's stochasticity weight W_S: the spread of a response's values against its question's mean.

Paper section 4.1.3, Eq. 14-16. The text and Eq. 15/16 point in opposite directions; ``direction``
chooses (docs/algorithms.md).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from megacurl.algorithms.packed import (
    check_packed,
    expand,
    segment_mean,
    segment_sum,
    select,
    valid_lengths,
)
from megacurl.ops import usable

SpreadSet = Literal["group", "group_by_outcome", "batch"]


def value_spread(
    values: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    *,
    stat: Literal["std", "var"] = "std",
    ddof: Literal[0, 1] = 0,
) -> Tensor:
    """Return sigma_i, the spread of every response's values over its valid tokens, float64 ``[B]``.

    Taken around the mean (reference: two passes in float64), so a large common offset costs no
    accuracy.
    A response with fewer than ddof + 1 valid tokens has spread 0.

    Args:
        values: ``[T]`` critic values at rollout time; not differentiated.
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.
        stat: standard deviation (the paper's sigma_i) or variance.
        ddof: 0 population, 1 sample statistic.
    """
    check_packed(mask, cu_seqlens, values=values)
    if stat not in ("std", "var") or ddof not in (0, 1):
        raise ValueError(f"ws_stat={stat!r}, ws_ddof={ddof!r}; use 'std' or 'var', and 0 or 1")
    if usable(values):
        count, _, m2 = torch.ops.megacurl.value_stats(
            values.detach().contiguous(), mask.contiguous(), cu_seqlens.contiguous()
        )
        variance: Tensor = m2 / (count - ddof).clamp(min=1)
        return variance.sqrt() if stat == "std" else variance
    x = select(values.detach(), mask).double()
    mean = segment_mean(x, mask, cu_seqlens)
    deviation = x - expand(mean, cu_seqlens, mask.numel())
    sum_of_squares = segment_sum(deviation.square(), mask, cu_seqlens)
    # With too few tokens the squares sum to exactly 0, so the clamp only avoids 0/0.
    variance = sum_of_squares / (valid_lengths(mask, cu_seqlens) - ddof).clamp(min=1)
    return variance.sqrt() if stat == "std" else variance


def group_mean_spread(
    spread: Tensor,
    group: Tensor,
    correct: Tensor,
    *,
    over: SpreadSet = "group",
    include: Tensor | None = None,
) -> Tensor:
    """Return mu_k of Eq. 14 for every trajectory, float64 ``[N]``.

    The arguments are vectors over ALL trajectories of the batch, gathered from the ranks. Numbers
    are summed in sorted order, so the result is the same to the bit however they were dealt out.

    Args:
        spread: ``[N]`` sigma_i.
        group: int ``[N]``, index of the question.
        correct: bool ``[N]``.
        over: responses that share a mean: those of the question, those of the question with the
            same outcome, or the whole batch.
        include: bool ``[N]``; trajectories left out do not count in any mean (overlong filter).
    """
    n = spread.numel()
    for name, vector in (("spread", spread), ("group", group), ("correct", correct)):
        if vector.shape != (n,):
            raise ValueError(
                f"{name} has shape {tuple(vector.shape)}; give one entry for each of {n}"
            )
    if over == "group":
        key = group.long()
    elif over == "group_by_outcome":
        key = group.long() * 2 + correct.long()
    elif over == "batch":
        key = torch.zeros_like(group, dtype=torch.long)
    else:
        raise ValueError(f"ws_mu is {over!r}; use 'group', 'group_by_outcome' or 'batch'")
    if n == 0:
        return spread.double()
    spread = spread.double()
    member = torch.ones_like(key, dtype=torch.bool) if include is None else include
    key = torch.unique(key, return_inverse=True)[1]
    by_spread = torch.argsort(spread, stable=True)
    order = by_spread[torch.argsort(key[by_spread], stable=True)]
    sizes = torch.bincount(key)
    bounds = torch.nn.functional.pad(sizes.cumsum(0), (1, 0))
    if usable(spread, dtype=torch.float64):
        mean: Tensor = torch.ops.megacurl.group_mean(spread[order], member[order], bounds)[0]
        return mean[key]
    return segment_mean(spread[order], member[order], bounds)[key]


def stochasticity_weight(
    spread: Tensor,
    mean_spread: Tensor,
    outcome: Tensor,
    *,
    alpha_p: float,
    alpha_n: float,
    lambda_p: float,
    lambda_n: float,
    direction: Literal["equation", "prose"] = "equation",
    scale: Literal["raw", "relative"] = "raw",
) -> Tensor:
    """Return W_S of every trajectory, float64 ``[N]``.

    Correct: 1 + alpha_p sigmoid(lambda_p (s - mu)) (Eq. 15); wrong:
    1 - alpha_n sigmoid(lambda_n (mu - s)) (Eq. 16). At s = mu that is 1 + alpha_p/2 and
    1 - alpha_n/2. A graded outcome r mixes them: r times the one and 1 - r times the other, which
    is exactly the one at r = 1 and the other at r = 0 (ours; the paper has right and wrong only).

    Args:
        spread: ``[N]`` s.
        mean_spread: ``[N]`` mu.
        outcome: bool ``[N]``, correct or not, or float ``[N]``, a score in [0, 1]. From the
            verifier, never derived from the shaped reward.
        alpha_p, alpha_n: amplitudes; alpha_n at most 1, or a weight could turn negative.
        lambda_p, lambda_n: steepness.
        direction: ``prose`` flips the sign of both sigmoids' arguments.
        scale: ``relative`` uses (s - mu)/mu in place of s - mu (0 where mu is 0).

    Raises:
        ValueError: for an amplitude, a steepness or a score out of range.
    """
    for name, value, bound in (
        ("ws_alpha_p", alpha_p, float("inf")),
        ("ws_alpha_n", alpha_n, 1.0),
        ("ws_lambda_p", lambda_p, float("inf")),
        ("ws_lambda_n", lambda_n, float("inf")),
    ):
        if not 0 <= value <= bound:
            raise ValueError(f"{name} is {value}; it must lie in [0, {bound}]")
    if scale not in ("raw", "relative"):
        raise ValueError(f"ws_scale is {scale!r}; use 'raw' or 'relative'")
    if direction not in ("equation", "prose"):
        raise ValueError(f"ws_direction is {direction!r}; use 'equation' or 'prose'")
    spread, mean_spread = spread.double(), mean_spread.double()
    weights = _compiled if usable(spread, mean_spread, dtype=torch.float64) else _reference
    constants = _Constants(
        alpha_p, alpha_n, lambda_p, lambda_n, direction == "prose", scale == "relative"
    )
    if outcome.dtype == torch.bool:
        return weights(spread, mean_spread, outcome, constants)
    score = outcome.to(spread)
    if not bool(((score >= 0) & (score <= 1)).all()):
        raise ValueError(f"scores range from {score.min():g} to {score.max():g}; give [0, 1]")
    right = torch.ones_like(score, dtype=torch.bool)
    if_right, if_wrong = (weights(spread, mean_spread, c, constants) for c in (right, ~right))
    return score * if_right + (1 - score) * if_wrong


class _Constants(NamedTuple):
    """Of Eq. 15 and 16, in the operator's order."""

    alpha_p: float
    alpha_n: float
    lambda_p: float
    lambda_n: float
    prose: bool
    relative: bool


def _compiled(
    spread: Tensor, mean_spread: Tensor, correct: Tensor, constants: _Constants
) -> Tensor:
    w_s: Tensor = torch.ops.megacurl.cvpo_weights(
        spread.contiguous(),
        mean_spread.contiguous(),
        correct.contiguous(),
        *(None, None, None),
        *constants,
        *(False, 0.0, 0.0, 0.0, 0.0),
    )[0]
    return w_s


def _reference(
    spread: Tensor, mean_spread: Tensor, correct: Tensor, constants: _Constants
) -> Tensor:
    alpha_p, alpha_n, lambda_p, lambda_n, prose, relative = constants
    gap = spread - mean_spread
    if relative:
        positive = mean_spread > 0
        gap = torch.where(positive, gap / torch.where(positive, mean_spread, 1.0), 0.0)
    if prose:
        gap = -gap
    reward = 1 + alpha_p * torch.sigmoid(lambda_p * gap)
    penalty = 1 - alpha_n * torch.sigmoid(-lambda_n * gap)
    return torch.where(correct, reward, penalty)
