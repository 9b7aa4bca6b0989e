# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""JSON lines: slime's {"prompt", "label"} and plain {"id", "prompt", "answer", ...} files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from megacurl.data.errors import DataError, shown
from megacurl.data.readers.base import Columns, RawRow, register_reader

_BOM = b"\xef\xbb\xbf"


@register_reader(".jsonl", ".ndjson")
class JsonlReader:
    """One JSON object a line, UTF-8; blank lines are skipped."""

    def count(self, path: Path) -> int:
        return sum(1 for _ in _lines(path))

    def rows(self, path: Path, columns: Columns, start: int, stop: int) -> Iterator[RawRow]:
        for row, (line, raw) in islice(enumerate(_lines(path)), start, stop):
            record = _parse(path, row, line, raw)
            yield RawRow(
                row=row,
                line=line,
                prompt=_first(record, columns.prompt),
                answer=_first(record, columns.answer),
                id=_first(record, columns.id),
                data_source=_first(record, columns.data_source),
                level=_first(record, columns.level),
            )


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    # Binary iteration splits at "\n" alone. str.splitlines() would also cut at form feeds and
    # U+2028, which occur unescaped inside real questions.
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            content = raw.removeprefix(_BOM) if number == 1 else raw
            if content.strip():
                yield number, content


def _parse(path: Path, row: int, line: int, raw: bytes) -> dict[str, object]:
    try:
        # Floats stay as written ("27.0", "0.10"): an answer must not be rounded on the way in.
        # strict=False admits raw control characters inside strings.
        record: object = json.loads(
            raw.decode("utf-8"), parse_float=str, parse_constant=_no_constant, strict=False
        )
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, row {row} (line {line}): not UTF-8 at byte {error.start}; convert the file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, row {row} (line {line}): not valid JSON ({error}): {shown(raw)}; "
            "write one complete JSON object a line"
        ) from error
    if not isinstance(record, dict):
        raise DataError(
            f"{path}, row {row} (line {line}): expected a JSON object, got {shown(record)}; "
            'write {"prompt": ..., "answer": ...}'
        )
    return record


def _no_constant(name: str) -> None:
    # NaN and Infinity are how pandas writes a missing value.
    return None


def _first(record: dict[str, object], paths: tuple[str, ...]) -> object:
    for path in paths:
        value: object = record
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None
