# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of one piece of code, with the standard library and torch alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def best(run: Callable[[], Any], device: str, repeats: int) -> float:
    """Return the shortest time in seconds, after one run to warm up."""
    shortest = float("inf")
    for i in range(repeats + 1):
        _wait(device)
        start = time.perf_counter()
        run()
        _wait(device)
        if i:
            shortest = min(shortest, time.perf_counter() - start)
    return shortest


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


class Meter:
    """Time and peak memory of this process since it was made (Linux)."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        self.base = _status("VmRSS")
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float, float]:
        """Return seconds, CPU seconds of all threads, and MB beyond what there was."""
        clock, cpu = time.perf_counter() - self.start[0], time.process_time() - self.start[1]
        return clock, cpu, _status("VmHWM") - self.base


def _status(name: str) -> float:
    """Return a size of this process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def peak_memory(run: Callable[[], Any], device: str) -> float:
    """Return the MB that ``run`` needs at most beyond what there is, its results included."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    meter = Meter()
    run()
    return meter.read()[2]
