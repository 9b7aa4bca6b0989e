# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""DAPO's soft overlong punishment: a reward that falls as a response nears the length limit."""

from __future__ import annotations


def overlong_penalty(length: int, *, max_length: int, buffer: int, factor: float = 1.0) -> float:
    """Return the reward to add to a response of ``length`` tokens, in [-factor, 0] (DAPO Eq. 13).

    0 up to ``max_length - buffer``, then falling linearly to -factor at ``max_length`` and beyond.

    Args:
        length: tokens of the response.
        max_length: the length limit.
        buffer: tokens before the limit where the penalty starts.
        factor: its size at the limit.

    Raises:
        ValueError: unless 1 <= buffer <= max_length.
    """
    if not 1 <= buffer <= max_length:
        raise ValueError(
            f"buffer is {buffer}; it must be at least 1 and at most the limit, {max_length}"
        )
    excess = length - (max_length - buffer)
    return -factor * min(max(excess / buffer, 0.0), 1.0)
