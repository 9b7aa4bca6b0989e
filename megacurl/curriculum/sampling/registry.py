# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sampling rules by name. One is added by adding a file to this package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from megacurl.config.schema import Config
from megacurl.curriculum.sampling.rule import SamplingRule
from megacurl.utils.registry import Registry

Build = Callable[[Config], SamplingRule]


@dataclass(frozen=True)
class RuleEntry:
    """build: makes the rule of a run. needs_groups: it compares responses to a question."""

    build: Build
    needs_groups: bool


_RULES: Registry[RuleEntry] = Registry("sampling rule", "megacurl.curriculum.sampling")


def register_rule(name: str, *, needs_groups: bool = False) -> Callable[[Build], Build]:
    """Decorator for a function that makes a rule from the settings.

    Raises ValueError when the name is taken.
    """

    def add(build: Build) -> Build:
        _RULES.add(name, RuleEntry(build, needs_groups))
        return build

    return add


def rule_names() -> list[str]:
    """All registered names, sorted."""
    return _RULES.names()


def get_rule(name: str) -> RuleEntry:
    """The rule of that name; ValueError names the nearest for an unknown one."""
    return _RULES.get(name)
