# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Batch normalisation of advantages (off for VAPO and CVPO, on for classical PPO and ORZ)."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor

from megacurl.algorithms.moments import Moments
from megacurl.algorithms.packed import select


def whiten(
    x: Tensor,
    mask: Tensor,
    moments: Moments,
    *,
    ddof: int,
    eps: float = 1e-8,
    eps_mode: Literal["add", "clamp"] = "add",
    shift_mean: bool = True,
) -> Tensor:
    """Return (x - mean)/sqrt(var) at valid tokens and 0 elsewhere, ``[T]``.

    Args:
        x: ``[T]``.
        mask: bool ``[T]``.
        moments: of all valid tokens of the *global* batch, merged over ranks.
        ddof: 1 for the sample variance (verl's PPO), 0 for the population variance (ORZ).
        eps: guard of the square root: ``add`` gives sqrt(var + eps), ``clamp`` sqrt(max(var, eps)).
        eps_mode: which of the two.
        shift_mean: False rescales around the mean, which is then added back.
    """
    if eps_mode not in ("add", "clamp"):
        raise ValueError(f"eps_mode is {eps_mode!r}; use 'add' or 'clamp'")
    variance = moments.variance(ddof)
    scale = math.sqrt(variance + eps if eps_mode == "add" else max(variance, eps))
    centered = (x - moments.mean) / scale
    return select(centered if shift_mean else centered + moments.mean, mask)
