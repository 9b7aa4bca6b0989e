# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""RUN/metrics.jsonl: one JSON object a step, in step order, on disk before ``log`` returns.

A killed run can tear the last line only; opening repairs that. NaN and infinity become null, and
the row's ``nonfinite`` field maps the name to "nan", "inf" or "-inf".
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from megacurl.utils.files import atomic_write_text

FILE_NAME = "metrics.jsonl"
_NONFINITE = "nonfinite"


class JsonlSink:
    """Append rows to ``path``, each flushed and fsynced."""

    def __init__(self, path: Path, resume_step: int | None) -> None:
        """Open for a new run (None), or keep the rows up to ``resume_step`` and append.

        Raises FileExistsError when a new run finds rows, ValueError on a damaged row before the
        last line.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = _whole_lines(path)
        steps = [int(row["step"]) for row in _decode_all(path, lines)]
        if resume_step is None and steps:
            raise FileExistsError(
                f"{path} already holds metrics up to step {max(steps)}; resume that run or give "
                "the new one another run folder"
            )
        kept = [
            line
            for line, step in zip(lines, steps, strict=True)
            if resume_step is not None and step <= resume_step
        ]
        text = "".join(line + "\n" for line in kept)
        if not path.exists() or path.read_bytes() != text.encode():
            atomic_write_text(path, text)
        self._file = path.open("ab")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append one row. Raises OSError when it cannot be written."""
        self._file.write(encode_row(step, metrics).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_sink(run_dir: Path, resume_step: int | None) -> JsonlSink:
    """Open ``run_dir``/metrics.jsonl."""
    return JsonlSink(run_dir / FILE_NAME, resume_step)


def encode_row(step: int, metrics: Mapping[str, float]) -> str:
    """Return the strict JSON text of one row, without a newline."""
    row: dict[str, Any] = {"step": step}
    nonfinite: dict[str, str] = {}
    for name, value in metrics.items():
        finite = math.isfinite(value)
        row[name] = value if finite else None
        if not finite:
            nonfinite[name] = str(float(value))
    if nonfinite:
        row[_NONFINITE] = nonfinite
    return json.dumps(row, allow_nan=False)


def decode_row(line: str) -> dict[str, float]:
    """Undo :func:`encode_row`; ``step`` is one of the keys. Raises ValueError on other text."""
    row = json.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("step"), int):
        raise ValueError("not a metrics row: no integer field 'step'")
    nonfinite = row.pop(_NONFINITE, {})
    if not isinstance(nonfinite, dict):
        raise ValueError(f"field 'nonfinite' is {nonfinite!r}, not an object")
    return row | {name: float(value) for name, value in nonfinite.items()}


def read_rows(path: str | Path) -> list[dict[str, float]]:
    """Read a metrics file, of a live or killed run too: a torn last line is left out.

    Raises FileNotFoundError, or ValueError naming a damaged line.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no metrics at {file}; is it a run folder's {FILE_NAME}?")
    return _decode_all(file, _whole_lines(file))


def _whole_lines(path: Path) -> list[str]:
    """Lines of the file without a torn last one. A last row lacking only its newline is whole."""
    if not path.exists():
        return []
    lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    last = lines.pop()
    if last:
        try:
            decode_row(last)
        except ValueError:
            return lines
        lines.append(last)
    return lines


def _decode_all(path: Path, lines: list[str]) -> list[dict[str, float]]:
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(decode_row(line))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number} is damaged ({error}); mend or remove that line"
            ) from error
    return rows
