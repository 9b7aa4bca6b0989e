# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A registry finds what the modules of a package add."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from megacurl.utils.registry import Registry


def test_modules_are_imported_at_the_first_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "colours"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "warm.py").write_text("import colours_table\ncolours_table.TABLE.add('red', 1)\n")
    (tmp_path / "colours_table.py").write_text(
        "from megacurl.utils.registry import Registry\nTABLE = Registry('colour', 'colours')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import colours_table  # type: ignore[import-not-found]

    table: Registry[int] = colours_table.TABLE
    assert "colours.warm" not in sys.modules
    table.add("blue", 2)
    assert table.names() == ["blue", "red"]
    assert table.get("red") == 1
    with pytest.raises(ValueError, match=r"unknown colour 'bleu'.*known: blue, red"):
        table.get("bleu")
    with pytest.raises(ValueError, match="colour 'red' is registered twice"):
        table.add("red", 3)
