# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Where prompts come from: the path with its optional row range, and the columns to look in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from megacurl.config.row_range import split_row_range
from megacurl.data.errors import DataError
from megacurl.data.readers import Columns, RawRow, Reader, get_reader


@dataclass(frozen=True)
class Source:
    """An opened prompt file: the rows start <= row < stop of `path`."""

    path: Path
    reader: Reader
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """Number of rows in the range."""
        return self.stop - self.start

    def read(self, columns: Columns) -> Iterator[RawRow]:
        """Stream the rows of the range in file order."""
        return self.reader.rows(self.path, columns, self.start, self.stop)


def open_source(path: str) -> Source:
    """Resolve "file" or "file@[a:b]" (Python slice rules, counted in rows of the file).

    Raises DataError for a missing file, an unknown suffix, an unreadable or an empty range.
    """
    try:
        file, rows = split_row_range(path)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    reader = get_reader(file)
    count = reader.count(file)
    if count == 0:
        raise DataError(f"{file}: has no rows; give a file of questions")
    start, stop, _ = rows.indices(count)
    if start >= stop:
        raise DataError(f"{path}: the row range is empty; the file has {count} rows")
    return Source(file, reader, start, stop)


def choose_columns(prompt_key: str | None, answer_key: str | None) -> Columns:
    """The usual column names, with prompt and answer replaced where the user names them."""
    usual = Columns()
    return Columns(
        prompt=(prompt_key,) if prompt_key else usual.prompt,
        answer=(answer_key,) if answer_key else usual.answer,
    )
