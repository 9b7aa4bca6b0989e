# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Parquet: the published DAPO-Math-17k and AIME files and everything in verl's layout.

The published training file holds 1,791,700 rows (each question 100 times, 286 MB). Batches are
read one after another and only the columns that a prompt needs are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from megacurl.data.errors import DataError
from megacurl.data.readers.base import Columns, RawRow, register_reader

_BATCH_ROWS = 4096


@register_reader(".parquet")
class ParquetReader:
    """Streams record batches; unknown columns are never touched."""

    def count(self, path: Path) -> int:
        with _open(path) as file:
            return int(file.metadata.num_rows)

    def rows(self, path: Path, columns: Columns, start: int, stop: int) -> Iterator[RawRow]:
        with _open(path) as file:
            found = _resolve(path, file.schema_arrow, columns)
            groups, row = _groups_from(file, start)
            try:
                for batch in file.iter_batches(
                    batch_size=_BATCH_ROWS, row_groups=groups, columns=found.names
                ):
                    if row >= stop:
                        return
                    skip = max(start - row, 0)
                    if skip < batch.num_rows:
                        yield from _batch_rows(
                            batch.slice(skip, stop - row - skip), row + skip, found.columns
                        )
                    row += batch.num_rows
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise DataError(
                    f"{path}: damaged after row {row} ({error}); copy or download the file again"
                ) from error


@dataclass(frozen=True)
class _Found:
    columns: Columns
    names: list[str]


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        with path.open("rb") as file:
            pointer = file.read(24).startswith(b"version https://git-lfs")
        fix = "run 'git lfs pull'" if pointer else "copy or download the file again"
        raise DataError(f"{path}: not a readable parquet file ({error}); {fix}") from error


def _resolve(path: Path, schema: pa.Schema, wanted: Columns) -> _Found:
    """Keep of each field the candidate paths that the file has; prompt and answer must exist."""

    def existing(candidates: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in candidates if _has(schema, name))

    columns = Columns(
        prompt=existing(wanted.prompt),
        answer=existing(wanted.answer),
        id=existing(wanted.id),
        data_source=existing(wanted.data_source),
        level=existing(wanted.level),
    )
    for field, hit, tried in (
        ("prompt", columns.prompt, wanted.prompt),
        ("answer", columns.answer, wanted.answer),
    ):
        if not hit:
            raise DataError(
                f"{path}: no column for field {field!r}; looked for {', '.join(tried)}, the file "
                f"has {', '.join(schema.names)}; rename the column that holds it"
            )
    every = columns.prompt + columns.answer + columns.id + columns.data_source + columns.level
    return _Found(columns, list(every))


def _has(schema: pa.Schema, dotted: str) -> bool:
    head, *rest = dotted.split(".")
    if head not in schema.names:
        return False
    kind = schema.field(head).type
    for name in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return False
        kind = kind.field(name).type
    return True


def _groups_from(file: pq.ParquetFile, start: int) -> tuple[list[int], int]:
    """Row groups that hold rows >= start, and the number of the first row of the first one."""
    first_row = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if first_row + rows > start:
            return list(range(group, file.num_row_groups)), first_row
        first_row += rows
    return [], first_row


def _batch_rows(batch: pa.RecordBatch, first: int, columns: Columns) -> Iterator[RawRow]:
    fields = (
        _values(batch, columns.prompt),
        _values(batch, columns.answer),
        _values(batch, columns.id),
        _values(batch, columns.data_source),
        _values(batch, columns.level),
    )
    for row, (prompt, answer, id_, source, level) in enumerate(zip(*fields, strict=True), first):
        yield RawRow(row, None, prompt, answer, id_, source, level)


def _values(batch: pa.RecordBatch, paths: tuple[str, ...]) -> list[object]:
    """One Python value a row: the first of the columns that is not null there."""
    merged: list[object] = [None] * batch.num_rows
    for path in reversed(paths):
        head, *rest = path.split(".")
        array = batch.column(head)
        for name in rest:
            array = pc.struct_field(array, name)
        values = _to_python(array)
        merged = [old if new is None else new for old, new in zip(merged, values, strict=True)]
    return merged


def _to_python(array: pa.Array) -> list[object]:
    kind = array.type
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_struct(
        kind.value_type
    ):
        return _chat_lists(array)
    return list(array.to_pylist())


def _chat_lists(array: pa.Array) -> list[object]:
    # Column-wise: to_pylist() on list<struct> is several times slower, which counts at 1.8 M rows.
    turns = array.flatten()
    names = [name for name in ("role", "content") if turns.type.get_field_index(name) >= 0]
    parts = [pc.struct_field(turns, name).to_pylist() for name in names]
    messages = [dict(zip(names, turn, strict=True)) for turn in zip(*parts, strict=True)]
    chats: list[object] = []
    begin = 0
    for length in pc.list_value_length(array).to_pylist():
        chats.append(None if length is None else messages[begin : begin + length])
        begin += length or 0
    return chats
