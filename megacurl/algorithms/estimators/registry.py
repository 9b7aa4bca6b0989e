# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantage estimators by name. One is added by adding a file to this package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from torch import Tensor

from megacurl.algorithms.responses import Responses
from megacurl.config.schema import AlgorithmConfig
from megacurl.utils.names import nearest_hint

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


_ESTIMATORS: dict[str, Estimator] = {}


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
        if name in _ESTIMATORS:
            raise ValueError(f"estimator {name!r} is registered twice; choose another name")
        _ESTIMATORS[name] = Estimator(name, estimate, needs_values, needs_groups, kl_in_reward)
        return estimate

    return add


def estimator_names() -> list[str]:
    """All registered names, sorted."""
    _import_estimators()
    return sorted(_ESTIMATORS)


def get_estimator(name: str) -> Estimator:
    """The estimator of that name; ValueError names the nearest for an unknown one."""
    _import_estimators()
    if name not in _ESTIMATORS:
        hint = nearest_hint(name, _ESTIMATORS)
        raise ValueError(f"unknown estimator {name!r}{hint}; known: {', '.join(estimator_names())}")
    return _ESTIMATORS[name]


@cache
def _import_estimators() -> None:
    package = importlib.import_module("megacurl.algorithms.estimators")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
