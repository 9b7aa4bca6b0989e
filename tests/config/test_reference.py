# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""docs/configuration.md says what the schema says."""

from __future__ import annotations

from pathlib import Path

import pytest

from megacurl.config.fields import field_specs
from megacurl.config.presets import PRESETS
from megacurl.config.reference import reference_markdown, update_reference

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert update_reference(page) == page, (
        "run: python -m megacurl.config.reference docs/configuration.md"
    )


def test_every_flag_and_preset_is_listed() -> None:
    text = reference_markdown()
    rows = [line for line in text.splitlines() if line.startswith("| `--")]
    for spec in field_specs().values():
        assert any(row.startswith(f"| `{spec.flag}`") for row in rows), spec.name
    for name, preset in PRESETS.items():
        assert f"* `{name}`: {preset.summary}." in text
    (lam,) = (row for row in rows if row.startswith("| `--lam-critic` | `0.1` | `0.1`"))
    assert lam.split(" | ")[4:7] == ["`1.0`", "`1.0`", "`0.95`"]  # vapo, vc_ppo, ppo
    assert "| `--bf16`, `--no-bf16` | switch | off | Train in bfloat16" in text


def test_every_table_row_has_as_many_cells_as_its_head() -> None:
    width = 0
    for line in reference_markdown().splitlines():
        if line.startswith("|---"):
            continue
        cells = line.replace("\\|", "").count("|") - 1
        if line.startswith("| Flag"):
            width = cells
        elif line.startswith("|"):
            assert cells == width, line


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="must hold the lines"):
        update_reference("# Configuration\n")
