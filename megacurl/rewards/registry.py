# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Verifiers by name. A verifier is added by adding one file to this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from megacurl.rewards.verdict import Verdict
from megacurl.utils.registry import Registry


class Verifier(Protocol):
    """Grades one response against one reference answer. Must be safe to call from any thread.

    finished: False when the length limit cut the response off.
    """

    def __call__(self, response: str, answer: str, *, finished: bool) -> Verdict: ...


# A function that is a verifier, or a class whose instances are (state: a seed, a worker pool).
Entry = TypeVar("Entry", bound=Callable[..., Any])
_VERIFIERS: Registry[Callable[..., Any]] = Registry("verifier", "megacurl.rewards")


def register_verifier(name: str) -> Callable[[Entry], Entry]:
    """Decorator for a verifier function, or for a class that makes verifiers.

    Raises ValueError when the name is taken.
    """

    def add(entry: Entry) -> Entry:
        _VERIFIERS.add(name, entry)
        return entry

    return add


def verifier_names() -> list[str]:
    """All registered names, sorted."""
    return _VERIFIERS.names()


def get_verifier(name: str, **options: Any) -> Verifier:
    """The verifier of that name; `options` go to the constructor of class-based verifiers.

    Raises ValueError for an unknown name (naming the nearest one) or options it does not take.
    """
    entry = _VERIFIERS.get(name)
    if isinstance(entry, type):
        try:
            verifier: Verifier = entry(**options)
        except TypeError as error:
            raise ValueError(f"verifier {name!r} does not take {options}: {error}") from error
        return verifier
    if options:
        raise ValueError(f"verifier {name!r} takes no options, got {options}")
    function: Verifier = entry
    return function


def verifier_options(
    *, require_value: bool, symbolic: bool, correct_threshold: float | None
) -> dict[str, bool | float]:
    """Options of ``get_verifier`` for --require-value, --symbolic and --correct-threshold.

    A flag that was left alone gives no option: most verifiers take none.
    """
    options: dict[str, bool | float] = {}
    if require_value:
        options["require_value"] = True
    if not symbolic:
        options["symbolic"] = False
    if correct_threshold is not None:
        options["correct_threshold"] = correct_threshold
    return options
