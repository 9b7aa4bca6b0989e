# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Inspection: the counts of the published files, bad rows, the printed table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from megacurl.data import DataError, format_inspection, inspect_file
from megacurl.data.answer_kind import ANSWER_KINDS, answer_kind

ROOT = Path(__file__).parents[2]
DAPO = ROOT / "tests/fixtures/data/dapo_published_layout_fixture.parquet"


def test_published_fixture() -> None:
    found = inspect_file(str(DAPO))
    assert (found.rows, found.bad_rows) == (2790, 0)
    assert (found.distinct_by_id, found.distinct_by_text) == (279, 271)
    assert (found.conflicting_ids, found.conflicting_texts) == (0, 3)
    assert sum(found.answer_kinds.values()) == 279
    assert set(found.answer_kinds) == {"integer", "negative integer"}
    assert found.data_sources == {"math_dapo": 279}
    assert (found.turns, found.system_turns) == (2790, 0)
    assert found.longest_prompt > 2000


def test_table_is_aligned_and_complete() -> None:
    text = format_inspection(inspect_file(str(ROOT / "examples/data/math500.jsonl")))
    rows = text.splitlines()[1:]
    assert "rows" in rows[0] and rows[0].endswith("500")
    assert len({len(row) for row in rows if row[-1].isdigit()}) == 1, "numbers end in one column"
    assert any("answers: fraction" in row for row in rows)


def test_bad_rows_are_counted_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    rows = [{"prompt": turns, "label": "1"}, {"prompt": "q"}, {"prompt": turns, "label": "2"}]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    found = inspect_file(str(file))
    assert (found.rows, found.bad_rows, found.turns, found.system_turns) == (3, 1, 4, 2)
    assert found.conflicting_texts == found.conflicting_ids == 1
    assert "first unusable row: " in format_inspection(found)
    assert found.first_error is not None and "row 1 (line 2): answer None" in found.first_error
    with pytest.raises(DataError, match="no such prompt file"):
        inspect_file(str(tmp_path / "b.jsonl"))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("42", "integer"), ("1,234", "integer"), ("-7", "negative integer"), ("3/4", "fraction"),
        ("-\\frac{3}{4}", "fraction"), ("\\dfrac34", "fraction"), (".5", "decimal"),
        ("-1.25", "decimal"), ("D", "letter"), ("\\text{(C)}", "letter"), ("52_8", "latex"),
        ("2\\sqrt{3}", "latex"), ("336^\\circ", "latex"), ("p - q", "text"), ("1, 2", "text"),
        ("Evelyn", "text"), ("", "text"), ("1\n2", "text"),
    ],
)  # fmt: skip
def test_answer_kind(answer: str, kind: str) -> None:
    assert answer_kind(answer) == kind
    assert kind in ANSWER_KINDS
