# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Diagnostics of invented numbers, on every rank of a gloo world."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from megacurl.algorithms.metrics import ExplainedVariance
from megacurl.config.schema import Config
from megacurl.diagnostics import diagnose
from megacurl.experience import Experience
from megacurl.megatron.actor import LogProbs
from megacurl.megatron.critic import Values
from megacurl.megatron.shard import Shard
from megacurl.trajectory import Trajectory
from tests.jobs import enter


@dataclasses.dataclass(frozen=True)
class Invented:
    """What models would say of a response; the first four one number a token."""

    values: list[float]
    returns: list[float]
    advantages: list[float]
    entropy: list[float]
    weight: float
    sigma: float


def invent(number: int, length: int) -> Invented:
    """Numbers of response ``number`` that float32 holds exactly."""
    r = random.Random(number)

    def some(low: int, high: int) -> list[float]:
        return [r.randint(low, high) / 64 for _ in range(length)]

    return Invented(
        some(-80, 80), some(-64, 64), some(-64, 64), some(0, 300), *(r.random() for _ in range(2))
    )


def diagnose_invented(
    config: Config, trajectories: Sequence[Trajectory], garbage: float
) -> dict[str, float]:
    """:func:`diagnose` with ``garbage`` at masked tokens."""
    grid = enter(config)
    shard = Shard(trajectories, config, grid, step=0)
    invented = [invent(i, len(t.response_ids)) for i, t in enumerate(trajectories)]

    def tokens(field: str) -> Tensor:
        numbers = [x for i in shard.order for x in getattr(invented[i], field)]
        return torch.where(shard.mask, torch.tensor(numbers), garbage)

    nothing = torch.zeros(len(shard.order))
    experience = Experience(
        advantages=tokens("advantages"),
        returns=tokens("returns"),
        weights=torch.tensor([invented[i].weight for i in shard.order], dtype=torch.float64),
        health=ExplainedVariance(),
        spread=torch.tensor([one.sigma for one in invented], dtype=torch.float64),
        metrics={},
    )
    values = Values(tokens("values"), nothing) if config.algorithm.use_critic else None
    old = LogProbs(tokens("advantages"), tokens("entropy"))
    return diagnose(shard, values, old, experience, config, grid)
