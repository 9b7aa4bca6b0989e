# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Parts by name, where adding a part is adding a file to a package."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Generic, TypeVar

from megacurl.utils.names import nearest_hint

EntryT = TypeVar("EntryT")


class Registry(Generic[EntryT]):
    """Entries that the modules of a package add; the modules are imported at the first question.

    what: kind of part, for messages. package: dotted name; all its modules are imported.
    """

    def __init__(self, what: str, package: str) -> None:
        self.what, self.package = what, package
        self._entries: dict[str, EntryT] = {}
        self._imported = False

    def add(self, name: str, entry: EntryT) -> None:
        """Raises ValueError when the name is taken."""
        if name in self._entries:
            raise ValueError(f"{self.what} {name!r} is registered twice; choose another name")
        self._entries[name] = entry

    def names(self) -> list[str]:
        """All names, sorted."""
        self._import()
        return sorted(self._entries)

    def get(self, name: str) -> EntryT:
        """The entry of that name; ValueError names the nearest for an unknown one."""
        names = self.names()
        if name not in self._entries:
            hint = nearest_hint(name, names)
            raise ValueError(f"unknown {self.what} {name!r}{hint}; known: {', '.join(names)}")
        return self._entries[name]

    def _import(self) -> None:
        if not self._imported:
            import_modules(self.package)
            self._imported = True


def import_modules(package: str) -> None:
    """Import every module of ``package``, which adds what it has to a table."""
    path = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(path, package + "."):
        importlib.import_module(module.name)
