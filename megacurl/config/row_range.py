# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Paths of question files: ``FILE``, or ``FILE@[START:STOP]`` for some of its rows."""

from __future__ import annotations

import re
from pathlib import Path

_RANGE = re.compile(r"(?P<file>.+)@\[(?P<start>(-?\d+)?):(?P<stop>(-?\d+)?)\]")


def split_row_range(path: str) -> tuple[Path, slice]:
    """The file (``~`` expanded) and its rows, by Python's slice rules; all rows without a range.

    Raises ValueError where "@[" begins no range. The message says what to write.
    """
    match = _RANGE.fullmatch(path)
    if match is not None:
        start, stop = (int(text) if text else None for text in match.group("start", "stop"))
        return Path(match["file"]).expanduser(), slice(start, stop)
    file = Path(path).expanduser()
    if "@[" in path and not file.exists():
        raise ValueError(
            "cannot read the row range; write FILE@[START:STOP] with whole numbers, for example "
            "questions.jsonl@[0:500]"
        )
    return file, slice(None)


def file_problems(path: str) -> list[str]:
    """What keeps ``path`` from being read on this machine, in at most one sentence."""
    try:
        file, _ = split_row_range(path)
    except ValueError as error:
        return [f"{path}: {error}"]
    return [] if file.is_file() else [f"{path} is no file on this machine; check the path"]
