# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The error of everything that is wrong with settings, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ConfigError(ValueError):
    """Settings that cannot be used; ``problems`` lists all that is wrong, one sentence each."""

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


def raise_problems(problems: Iterable[str]) -> None:
    """Raise one :class:`ConfigError` with all ``problems``; do nothing when there are none."""
    found = tuple(problems)
    if found:
        raise ConfigError(found)


@contextmanager
def refusing(setting: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of ``kinds`` (default: ValueError) inside into a ConfigError about ``setting``.

    setting: the flag with its value, "--verifier maths".
    """
    caught = kinds or (ValueError,)
    try:
        yield
    except caught as error:
        raise ConfigError(f"{setting}: {error}") from error


@contextmanager
def about(flag: str) -> Iterator[None]:
    """Begin every problem found inside with the flag that named the input, unless it names one."""
    try:
        yield
    except ConfigError as error:
        problems = (p if p.startswith("--") else f"{flag}: {p}" for p in error.problems)
        raise ConfigError(problems) from error
