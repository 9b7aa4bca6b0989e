# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Files and directories that appear whole or not at all, also across kill -9 and power loss."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def atomic_write_text(path: str | Path, text: str) -> None:
    """Replace ``path`` by ``text`` (UTF-8, written as given); parents are created.

    A reader sees the old content or the new, never a part. On an error the old file stays and the
    temporary sibling is removed. Raises OSError (disk full, no permission, ``path`` a directory).
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    data = text.encode("utf-8")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _fsync_path(target.parent)


def atomic_write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON with :func:`atomic_write_text`.

    Strict JSON: NaN and infinity raise ValueError and an unknown type TypeError, before any write.
    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"cannot write {path}: {error}; convert the value first") from error
    atomic_write_text(path, text + "\n")


@contextmanager
def atomic_directory(path: str | Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path`` to fill; on success it is synced and renamed to it.

    The sibling is ``.<name>.partial``, the same on every rank, so several processes may fill it
    while one of them holds this context. What a killed run left under that name is removed first;
    an exception in the body removes it too and ``path`` never appears. An empty directory at
    ``path`` is replaced. Raises FileExistsError when ``path`` holds anything.
    """
    target = Path(path)
    _refuse_existing(target)
    partial = target.with_name(f".{target.name}.partial")
    _remove(partial)
    partial.mkdir(parents=True)
    try:
        yield partial
        _fsync_tree(partial)
        _refuse_existing(target)
        partial.rename(target)
    except BaseException:
        _remove(partial)
        raise
    _fsync_path(target.parent)


@contextmanager
def replaced_directory(path: str | Path) -> Iterator[Path]:
    """Like :func:`atomic_directory`, but an older directory at ``path`` is replaced.

    The old one stays whole until the new one is complete; between the two renames a kill leaves
    ``path`` absent and both directories whole beside it, as ``.<name>.new`` and ``.<name>.old``.
    """
    target = Path(path)
    new, old = (target.with_name(f".{target.name}.{tag}") for tag in ("new", "old"))
    _remove(new)
    with atomic_directory(new) as partial:
        yield partial
    _remove(old)
    if os.path.lexists(target):
        target.rename(old)
    new.rename(target)
    _remove(old)
    _fsync_path(target.parent)


def _refuse_existing(target: Path) -> None:
    if target.is_dir() and not target.is_symlink() and not any(target.iterdir()):
        return
    if os.path.lexists(target):
        raise FileExistsError(f"{target} already exists; remove it or choose another path")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


def _fsync_tree(root: Path) -> None:
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder, name)
            if not file.is_symlink():
                _fsync_path(file)
        _fsync_path(Path(folder))


def _fsync_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
