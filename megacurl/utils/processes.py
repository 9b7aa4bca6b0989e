# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Helper processes that do not outlive the process they help."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent ends, however that happens.

    Call it first thing in the child. ``parent`` is the parent's process id: if it ended before the
    request was made, this process ends at once.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
