# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""How far a number has moved since the run began; its state belongs into the checkpoint."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any


class Drift:
    """Mean of the latest ``window`` observations minus the mean of the first ``window``.

    Undefined until there are more than ``window`` of them.
    """

    def __init__(self, window: int = 10) -> None:
        if window < 1:
            raise ValueError(f"window is {window}; give at least 1")
        self.window = window
        self._first: list[float] = []
        self._latest: deque[float] = deque(maxlen=window)
        self._count = 0

    def observe(self, number: float) -> None:
        """Take one step's number; one that is not finite is passed over."""
        if not math.isfinite(number):
            return
        if len(self._first) < self.window:
            self._first.append(number)
        self._latest.append(number)
        self._count += 1

    @property
    def value(self) -> float | None:
        """The drift; None as long as it is undefined."""
        if self._count <= self.window:
            return None
        return (math.fsum(self._latest) - math.fsum(self._first)) / self.window

    def state_dict(self) -> dict[str, Any]:
        """Return the state, JSON-able; numbers survive JSON exactly."""
        return {"count": self._count, "first": list(self._first), "latest": list(self._latest)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where :meth:`state_dict` was taken; ``{}`` is a run that has observed nothing.

        Raises:
            ValueError: when the columns do not fit the count; nothing is changed then.
        """
        first = [float(x) for x in state.get("first", [])]
        latest = [float(x) for x in state.get("latest", [])]
        count = int(state.get("count", 0))
        kept = min(count, self.window)
        if (len(first), len(latest)) != (kept, kept):
            raise ValueError(
                f"the drift state is damaged: {len(first)} first and {len(latest)} latest numbers "
                f"of {count}, where {kept} of each belong"
            )
        self._first, self._count = first, count
        self._latest = deque(latest, maxlen=self.window)
