# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantage estimators by name. One is added by adding a file to this package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig
from megacurl.utils.registry import Registry

Estimate = Callable[[Responses, AlgorithmConfig], Tensor]
"""Advantages ``[T]`` of this rank's responses, 0 at masked tokens; not yet whitened or weighted.

It runs on every rank of the last pipeline stage and must not communicate.
"""


@dataclass(frozen=True)
class Estimator:
    """An estimator and what it needs of a run.

    needs_values: a critic. needs_groups: several responses to each question.
    kl_in_reward: it uses the token rewards, so ``--kl-placement reward`` reaches it.
    """

    name: str
    estimate: Estimate
    needs_values: bool
    needs_groups: bool
    kl_in_reward: bool


_ESTIMATORS: Registry[Estimator] = Registry("estimator", "megacurl.algorithms.estimators")


def register_estimator(
    name: str,
    *,
    needs_values: bool = False,
    needs_groups: bool = False,
    kl_in_reward: bool = False,
) -> Callable[[Estimate], Estimate]:
    """Decorator for an estimator function; see :class:`Estimator` for the arguments.

    Raises ValueError when the name is taken.
    """

    def add(estimate: Estimate) -> Estimate:
        entry = Estimator(name, estimate, needs_values, needs_groups, kl_in_reward)
        _ESTIMATORS.add(name, entry)
        return estimate

    return add


def estimator_names() -> list[str]:
    """All registered names, sorted."""
    return _ESTIMATORS.names()


def get_estimator(name: str) -> Estimator:
    """The estimator of that name; ValueError names the nearest for an unknown one."""
    return _ESTIMATORS.get(name)
