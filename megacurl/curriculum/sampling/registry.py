# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sampling rules by name. One is added by adding a file to this package."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from megacurl.config.schema import Config
from megacurl.curriculum.sampling.rule import SamplingRule
from megacurl.utils.names import nearest_hint

Build = Callable[[Config], SamplingRule]


@dataclass(frozen=True)
class RuleEntry:
    """build: makes the rule of a run. needs_groups: it compares responses to a question."""

    build: Build
    needs_groups: bool


_RULES: dict[str, RuleEntry] = {}


def register_rule(name: str, *, needs_groups: bool = False) -> Callable[[Build], Build]:
    """Decorator for a function that makes a rule from the settings.

    Raises ValueError when the name is taken.
    """

    def add(build: Build) -> Build:
        if name in _RULES:
            raise ValueError(f"sampling rule {name!r} is registered twice; choose another name")
        _RULES[name] = RuleEntry(build, needs_groups)
        return build

    return add


def rule_names() -> list[str]:
    """All registered names, sorted."""
    _import_rules()
    return sorted(_RULES)


def get_rule(name: str) -> RuleEntry:
    """The rule of that name; ValueError names the nearest for an unknown one."""
    _import_rules()
    if name not in _RULES:
        hint = nearest_hint(name, _RULES)
        raise ValueError(f"unknown sampling rule {name!r}{hint}; known: {', '.join(rule_names())}")
    return _RULES[name]


@cache
def _import_rules() -> None:
    package = importlib.import_module("megacurl.curriculum.sampling")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
