# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""When a running generation must stop, and whom it tells about its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

AbortCheck = Callable[[], bool]
ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class GenerateControl:
    """Stop conditions of one ``generate`` call.

    Args:
        deadline: ``time.monotonic()`` value after which the call returns what it has.
        should_abort: asked between tokens; True returns what there is.
        on_progress: called as ``(finished samples, all samples)`` whenever samples finish.
        paused: the engine's own reason to stop early.
    """

    deadline: float | None = None
    should_abort: AbortCheck | None = None
    on_progress: ProgressCallback | None = None
    paused: AbortCheck = lambda: False

    def must_stop(self) -> bool:
        """Whether to return now, with unfinished samples as partials."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return True
        if self.paused():
            return True
        return self.should_abort is not None and self.should_abort()

    def report(self, finished: int, total: int) -> None:
        """Pass progress on."""
        if self.on_progress is not None:
            self.on_progress(finished, total)
