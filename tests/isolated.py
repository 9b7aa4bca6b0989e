# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Command lines in processes of their own, forked from one that has imported the trainer.

Each starts with a fresh state, as ``python -m megacurl`` does, without the seconds of importing.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

_FORKSERVER = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["megacurl.train", "megacurl.cli"])


@dataclass(frozen=True)
class Finished:
    """A command that has ended (``code``), or was ended at its deadline (None)."""

    code: int | None
    output: str
    errors: str
    seconds: float


def run_command(argv: list[str], outputs: Path, timeout_s: float = 120.0) -> Finished:
    """``megacurl ARGV`` to its end; stdout and stderr go to files in the folder ``outputs``."""
    started = time.monotonic()
    process = start_command(argv, outputs)
    process.join(timeout_s)
    if process.is_alive():
        process.kill()
        process.join()
        code = None
    else:
        code = process.exitcode
    out, err = ((outputs / name).read_text() for name in ("stdout", "stderr"))
    return Finished(code, out, err, time.monotonic() - started)


def start_command(argv: list[str], outputs: Path) -> BaseProcess:
    """``megacurl ARGV`` at its beginning; the caller joins or kills it."""
    outputs.mkdir(parents=True, exist_ok=True)
    process = _FORKSERVER.Process(target=_main, args=(argv, str(outputs)))
    process.start()
    return process


def _main(argv: list[str], outputs: str) -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        file = os.open(os.path.join(outputs, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    from megacurl.cli import main

    sys.exit(main(argv))
