# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Loading: the published files as they are, duplicates, conflicts, row ranges, instructions."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from megacurl.data import DAPO_INSTRUCTION, DataError, load_prompt_set, load_prompts

ROOT = Path(__file__).parents[2]
DAPO = ROOT / "tests/fixtures/data/dapo_published_layout_fixture.parquet"
AIME = ROOT / "tests/fixtures/data/dapo_aime-2024_published.parquet"
BENCHMARKS = ROOT / "examples/data"


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("file", "dedupe", "rows", "kept"),
    [
        (DAPO, "id", 2790, 279),
        (DAPO, "text", 2790, 271),
        (DAPO, "none", 2790, 2790),
        (AIME, "id", 960, 30),
        (AIME, "text", 960, 30),
    ],
)
def test_published_files(file: Path, dedupe: str, rows: int, kept: int) -> None:
    found = load_prompt_set(str(file), dedupe=dedupe)  # type: ignore[arg-type]
    assert found.rows == rows
    assert len(found.prompts) == kept == len({p.id for p in found.prompts})
    assert found.duplicates == rows - kept and found.dropped == 0
    assert all(isinstance(p.answer, str) and p.answer for p in found.prompts)
    assert {p.data_source for p in found.prompts} == {"math_dapo"}
    assert all([m["role"] for m in p.messages] == ["user"] for p in found.prompts)


def test_published_details_survive() -> None:
    prompts = {p.id: p for p in load_prompts(str(DAPO))}
    assert prompts["9a9b6eb4-a1cb-49d1-8c1e-62eaf2f74079"].answer == "34"
    answers = {p.answer for p in prompts.values()}
    assert "20000000000000000000000" in answers, "beyond int64: must never pass a number type"
    assert any(a.startswith("-") for a in answers)
    assert any("\x0c" in p.text for p in prompts.values()), "control characters are kept"
    assert any("\u4e00" <= c <= "\u9fff" for p in prompts.values() for c in p.text)
    by_int_id = load_prompts(str(AIME))
    assert {p.id for p in by_int_id} == {str(i) for i in range(30)}
    assert by_int_id[0].id == "2" and by_int_id[0].answer == "540", "file order is kept"


def test_conflicting_answers_under_text() -> None:
    first = load_prompt_set(str(DAPO), dedupe="text")
    dropped = load_prompt_set(str(DAPO), dedupe="text", conflicts="drop")
    assert first.conflicts == dropped.conflicts == 3
    assert len(dropped.prompts) == len(first.prompts) - 3
    assert dropped.rows == len(dropped.prompts) + dropped.duplicates + dropped.dropped
    with pytest.raises(DataError, match=r"rows \d+ and \d+: the same question has two answers"):
        load_prompts(str(DAPO), dedupe="text", conflicts="error")


def test_conflicting_ids(tmp_path: Path) -> None:
    two_answers = write(
        tmp_path / "a.jsonl",
        [{"id": 7, "prompt": "q", "answer": "1"}, {"id": "7", "prompt": " q", "answer": 2}],
    )
    found = load_prompt_set(two_answers)
    assert [p.answer for p in found.prompts] == ["1"] and found.conflicts == 1
    with pytest.raises(DataError, match="id '7' has two answers, '1' and '2'"):
        load_prompts(two_answers, conflicts="error")
    with pytest.raises(DataError, match="every row was dropped"):
        load_prompts(two_answers, conflicts="drop")
    two_questions = write(
        tmp_path / "b.jsonl",
        [{"id": 7, "prompt": "q", "answer": 1}, {"id": 7, "prompt": "r", "answer": 1}],
    )
    with pytest.raises(DataError, match="names two different questions; use --dedupe text"):
        load_prompts(two_questions)
    assert [p.id for p in load_prompts(two_questions, dedupe="text")] == ["7", "7#2"]
    assert [p.id for p in load_prompts(two_questions, dedupe="none")] == ["7", "7#2"]


def test_same_id_in_two_data_sources_is_no_duplicate(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.jsonl",
        [
            {"data_source": s, "extra_info": {"index": 0}, "prompt": s, "answer": 1}
            for s in ("gsm8k", "math")
        ],
    )
    assert [(p.id, p.data_source) for p in load_prompts(file)] == [("0", "gsm8k"), ("0#2", "math")]


def test_unique_ids_do_not_take_an_existing_one(tmp_path: Path) -> None:
    rows = [{"id": i, "prompt": f"q{n}", "answer": n} for n, i in enumerate(("a", "a", "a#2"))]
    prompts = load_prompts(write(tmp_path / "a.jsonl", rows), dedupe="none")
    assert [p.id for p in prompts] == ["a", "a#3", "a#2"]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("aime24", 30),
        ("aime25", 30),
        ("amc23", 40),
        ("gsm8k_test_200", 200),
        ("math500", 500),
    ],
)
def test_shipped_benchmarks(name: str, rows: int) -> None:
    prompts = load_prompts(str(BENCHMARKS / f"{name}.jsonl"), conflicts="error")
    assert len(prompts) == rows
    assert {p.data_source for p in prompts} == {name}


def test_row_ranges(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.jsonl", [{"id": i, "prompt": f"q{i}", "answer": i} for i in range(9)]
    )
    ids = {
        s: [p.id for p in load_prompts(file + s)] for s in ("@[2:4]", "@[7:]", "@[:1]", "@[-2:]")
    }
    assert ids == {"@[2:4]": ["2", "3"], "@[7:]": ["7", "8"], "@[:1]": ["0"], "@[-2:]": ["7", "8"]}
    with pytest.raises(DataError, match="the row range is empty; the file has 9 rows"):
        load_prompts(file + "@[9:]")
    with pytest.raises(DataError, match=r"write FILE@\[START:STOP\] with whole numbers"):
        load_prompts(file + "@[a:3]")
    whole = load_prompts(str(DAPO), dedupe="none")
    part = load_prompts(f"{DAPO}@[1500:1503]", dedupe="none")
    assert [p.text for p in part] == [p.text for p in whole[1500:1503]], "inside a row group"


def test_instruction(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"id": 1, "prompt": "What is {2}?", "answer": "2"}])
    (prompt,) = load_prompts(file, instruction="Solve.\n{problem}\nEnd with Answer:")
    assert prompt.messages == (
        {"role": "user", "content": "Solve.\nWhat is {2}?\nEnd with Answer:"},
    )
    plain = load_prompts(str(DAPO))
    framed = load_prompts(str(DAPO), instruction=DAPO_INSTRUCTION)
    assert framed == plain, "the published rows carry this frame already"
    with pytest.raises(DataError, match=r"must contain \{problem\} exactly once"):
        load_prompts(file, instruction="Solve this")


def test_missing_id_is_a_stable_hash_of_the_text(tmp_path: Path) -> None:
    rows = [
        {"prompt": "q", "answer": 1},
        {"prompt": "r", "answer": 1},
        {"prompt": "q", "answer": 1},
    ]
    prompts = load_prompts(write(tmp_path / "a.jsonl", rows))
    assert [p.id for p in prompts] == ["text-7a3c819eb06af43d", "text-9835216a230f0138"]


def test_keys_and_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"meta": {"task": "q"}, "prompt": "no", "answer": "x", "target": "4", "level": 3}]
    file = write(tmp_path / "set.jsonl", rows)
    with caplog.at_level(logging.INFO, logger="megacurl"):
        (prompt,) = load_prompts(file, prompt_key="meta.task", answer_key="target")
    assert (prompt.text, prompt.answer, prompt.level) == ("q", "4", "3")
    assert "1 rows -> 1 prompts" in caplog.text


def test_choices_are_checked() -> None:
    with pytest.raises(
        DataError, match="dedupe='uuid' is unknown; use one of 'id', 'text', 'none'"
    ):
        load_prompts(str(DAPO), dedupe="uuid")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="conflicts='last' is unknown"):
        load_prompts(str(DAPO), conflicts="last")  # type: ignore[arg-type]
