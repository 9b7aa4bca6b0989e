# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The list of tensors an update must bring, and the complete list of what is wrong with another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from megacurl.rollout.errors import ManifestError
from megacurl.rollout.types import TensorMeta

_SHOWN = 8


def check_manifest(wanted: Sequence[TensorMeta], offered: Sequence[TensorMeta]) -> None:
    """Compare names, shapes and dtypes; the order is free.

    Args:
        wanted: the engine's manifest.
        offered: what the trainer is about to send.

    Raises:
        ManifestError: lists missing, unexpected and repeated names and every differing shape or
            dtype (the first eight of each kind, with the count).
    """
    want = {meta.name: meta for meta in wanted}
    have = {meta.name: meta for meta in offered}
    common = [name for name in want if name in have]
    repeated = [name for name, count in Counter(meta.name for meta in offered).items() if count > 1]
    problems = {
        "missing": [name for name in want if name not in have],
        "unexpected": [name for name in have if name not in want],
        "listed twice": repeated,
        "wrong shape": [
            f"{name} (engine {want[name].shape}, offered {have[name].shape})"
            for name in common
            if want[name].shape != have[name].shape
        ],
        "wrong dtype": [
            f"{name} (engine {want[name].dtype}, offered {have[name].dtype})"
            for name in common
            if want[name].dtype != have[name].dtype
        ],
    }
    lines = [_line(kind, entries) for kind, entries in problems.items() if entries]
    if lines:
        raise ManifestError(
            f"the offered manifest ({len(offered)} tensors) is not the engine's"
            f" ({len(wanted)} tensors), nothing was sent:\n" + "\n".join(lines)
        )


def _line(kind: str, entries: list[str]) -> str:
    more = f", ... {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
    return f"  {kind} ({len(entries)}): {', '.join(entries[:_SHOWN])}{more}"
