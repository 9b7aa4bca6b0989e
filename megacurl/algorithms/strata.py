# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Parts of a rollout to measure apart: quarters of a response, levels of difficulty."""

from __future__ import annotations

import torch
from torch import Tensor

from megacurl.algorithms.metrics import ExplainedVariance
from megacurl.algorithms.packed import check_packed, expand, valid_lengths

QUARTERS = ("q1", "q2", "q3", "q4")
"""Of the valid tokens of a response, from its first to its last."""
LEVELS = ("hard", "medium", "easy")
"""Of a question, by the share of its responses that are correct."""


def response_quarter(mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return the quarter of its response that a token lies in, int64 ``[T]`` of 0 to 3.

    The k-th (from 0) of n valid tokens is in quarter floor(4 k / n): a single token in the first.
    Entries of masked tokens mean nothing.

    Args:
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.
    """
    check_packed(mask, cu_seqlens)
    size = mask.numel()
    lengths = valid_lengths(mask, cu_seqlens)
    earlier = expand(lengths.cumsum(0) - lengths, cu_seqlens, size)  # in the responses before
    place = mask.long().cumsum(0) - 1 - earlier
    quarter = len(QUARTERS) * place // expand(lengths, cu_seqlens, size).clamp(min=1)
    return quarter.clamp(0, len(QUARTERS) - 1)


def question_level(
    correct: Tensor, group: Tensor, *, hard_up_to: float, easy_from: float
) -> Tensor:
    """Return the level of every response's question, int64 ``[N]``, an index into LEVELS.

    The accuracy of a question is that of its responses in the batch.

    Args:
        correct: bool ``[N]``, of all responses of the batch.
        group: int ``[N]``, index of the question, from 0.
        hard_up_to: accuracy up to which (inclusive) a question is hard.
        easy_from: accuracy from which (inclusive) it is easy, above ``hard_up_to``.
    """
    if correct.shape != group.shape or correct.dim() != 1:
        raise ValueError(
            f"correct has shape {tuple(correct.shape)} and group {tuple(group.shape)}; "
            "give one of each a response"
        )
    if not hard_up_to < easy_from:
        raise ValueError(
            f"hard_up_to={hard_up_to}, easy_from={easy_from}; a question cannot be both"
        )
    sizes = torch.bincount(group)
    right = torch.bincount(group[correct.bool()], minlength=sizes.numel())
    accuracy = right.double() / sizes.clamp(min=1)
    level = 1 - (accuracy <= hard_up_to).long() + (accuracy >= easy_from).long()
    return level[group]


def explained_variance_by(
    values: Tensor, returns: Tensor, mask: Tensor, part: Tensor, count: int
) -> list[ExplainedVariance]:
    """Return the explained variance of each part's valid tokens, to be merged over ranks.

    Args:
        values, returns: ``[T]``.
        mask: bool ``[T]``.
        part: int ``[T]`` from 0 to ``count`` - 1; its entries at masked tokens are not looked at.
        count: number of parts.
    """
    return [ExplainedVariance.of(values, returns, mask & (part == k)) for k in range(count)]
