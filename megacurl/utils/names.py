# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Closest-name hints for error messages about flags, keys, metrics and registry entries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CUTOFF = 0.6


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate most similar to ``name``, or None when none is close.

    Case is ignored and ``-`` equals ``_``, the two ways a flag or key is usually misspelt.
    Among equally similar candidates the alphabetically first wins, so messages are stable.
    """
    by_key: dict[str, str] = {}
    for candidate in sorted(set(candidates)):
        by_key.setdefault(_fold(candidate), candidate)
    matches = difflib.get_close_matches(_fold(name), list(by_key), n=1, cutoff=_CUTOFF)
    return by_key[matches[0]] if matches else None


def nearest_hint(name: str, candidates: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` with a leading blank, or ``""`` when nothing is close."""
    match = nearest(name, candidates)
    return f" (did you mean {match!r}?)" if match is not None else ""


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")
