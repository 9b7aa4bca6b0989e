# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A helper process ends with its parent, even when that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

PARENT = """
import multiprocessing, os, sys, time
from megacurl.utils.processes import end_with_parent

def child(parent):
    end_with_parent(parent)
    print(os.getpid(), flush=True)
    time.sleep(60)

multiprocessing.get_context("fork").Process(target=child, args=(os.getpid(),)).start()
time.sleep(60)
"""


def alive(pid: int) -> bool:
    """Running, not gone and not a zombie that nobody has collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_killed_parent_takes_its_child_along() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)
