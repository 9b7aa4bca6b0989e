# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a file format must provide, and the registry that finds it by file suffix."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from megacurl.data.errors import DataError
from megacurl.utils.registry import import_modules


@dataclass(frozen=True)
class Columns:
    """Where each field may live, as dotted paths; in a row the first one that is not null wins.

    The defaults cover the published DAPO-Math-17k and AIME parquet files, verl's layout,
    slime's {"prompt", "label"} lines and plain {"id", "prompt", "answer"} lines.
    """

    prompt: tuple[str, ...] = ("prompt", "messages", "problem", "question")
    answer: tuple[str, ...] = ("reward_model.ground_truth", "label", "answer", "ground_truth")
    id: tuple[str, ...] = ("extra_info.index", "id", "index")
    data_source: tuple[str, ...] = ("data_source",)
    level: tuple[str, ...] = ("level", "difficulty")


@dataclass(frozen=True, slots=True)
class RawRow:
    """The wanted fields of one row, not yet checked. `row` counts from 0, `line` from 1."""

    row: int
    line: int | None
    prompt: object
    answer: object
    id: object
    data_source: object
    level: object


class Reader(Protocol):
    """One file format. Rows are streamed: a reader never holds the whole file."""

    def count(self, path: Path) -> int:
        """Number of rows in the file."""

    def rows(self, path: Path, columns: Columns, start: int, stop: int) -> Iterator[RawRow]:
        """Rows start <= row < stop in file order; DataError names the row that is unreadable."""


ReaderClass = TypeVar("ReaderClass", bound=Callable[[], Reader])
_READERS: dict[str, Callable[[], Reader]] = {}


def register_reader(*suffixes: str) -> Callable[[ReaderClass], ReaderClass]:
    """Class decorator: files that end in one of `suffixes` (with the dot) go to this reader."""

    def add(reader: ReaderClass) -> ReaderClass:
        for suffix in suffixes:
            if suffix in _READERS:
                raise ValueError(f"two readers claim the suffix {suffix!r}")
            _READERS[suffix] = reader
        return reader

    return add


@cache
def _import_readers() -> None:
    # A format is added by adding a file to this folder, so the folder is the list.
    import_modules("megacurl.data.readers")


def get_reader(path: Path) -> Reader:
    """The reader for a file, chosen by its suffix.

    Raises DataError when the file is missing or no reader knows the suffix.
    """
    _import_readers()
    if path.is_dir():
        raise DataError(f"{path}: is a folder; give one prompt file inside it")
    if not path.exists():
        near = difflib.get_close_matches(path.name, _names_beside(path), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DataError(f"{path}: no such prompt file{hint}")
    if path.suffix.lower() not in _READERS:
        known = ", ".join(sorted(_READERS))
        raise DataError(f"{path}: unknown suffix {path.suffix!r}; known formats are {known}")
    return _READERS[path.suffix.lower()]()


def _names_beside(path: Path) -> list[str]:
    return [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
