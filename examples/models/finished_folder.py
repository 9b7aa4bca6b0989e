# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Folders that the scripts beside this file make: whole or not at all, and only once."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from megacurl.utils.files import atomic_directory

_REPORT = "report.json"


def is_finished(folder: Path, arguments: Mapping[str, Any]) -> bool:
    """Whether ``folder`` was made with the same arguments; False if it is absent or empty.

    Raises FileExistsError when it holds anything else: that is never overwritten.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    try:
        found = json.loads((folder / _REPORT).read_text("utf-8"))["arguments"]
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    if found != dict(arguments):
        what = f"was made with {found}, not {dict(arguments)}" if found else "holds something else"
        raise FileExistsError(f"--output {folder} {what}; remove it or choose another folder")
    return True


@contextmanager
def new_folder(output: Path, arguments: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a temporary folder and a report to fill; both become ``output`` on success.

    SIGTERM removes the temporary folder as an exception does.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with atomic_directory(output) as folder:
            report: dict[str, Any] = {}
            yield folder, report
            report["arguments"] = dict(arguments)
            (folder / _REPORT).write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    finally:
        signal.signal(signal.SIGTERM, before)
