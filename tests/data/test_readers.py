# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""File formats and checks of single rows: every refusal names file, row, field, value and fix."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from megacurl.data import DataError, Prompt, load_prompts


def lines(tmp_path: Path, *content: str | bytes) -> str:
    file = tmp_path / "set.jsonl"
    file.write_bytes(b"\n".join(c.encode() if isinstance(c, str) else c for c in content))
    return str(file)


def test_jsonl_is_cut_at_newlines_only(tmp_path: Path) -> None:
    odd = "a\x0crac{1}{2}\u2028b\x85c\x0bd"
    rows = [json.dumps({"prompt": odd + str(i), "answer": i}, ensure_ascii=False) for i in range(3)]
    raw = rows[2].replace("\\f", "\x0c").replace("\\u000b", "\x0b")
    assert "\x0c" in raw and len(raw.splitlines()) > 1
    file = lines(tmp_path, "\ufeff" + rows[0] + "\r", "", "  ", rows[1], raw, "")
    assert [p.text for p in load_prompts(file)] == [odd + str(i) for i in range(3)]


def test_slime_and_plain_lines(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    file = lines(
        tmp_path,
        json.dumps({"prompt": chat, "label": "34"}),
        json.dumps({"prompt": "plain", "label": 5}),
        json.dumps({"id": 3, "problem": "p", "answer": "x", "unused": [1]}),
        json.dumps({"id": None, "question": "w", "ground_truth": ["7"]}),
        '{"prompt": "f", "answer": 27.0}',
        '{"prompt": "g", "answer": 22099999999999998951424}',
        '{"id": NaN, "prompt": "h", "answer": 0.10}',
    )
    prompts = load_prompts(file)
    assert [p.answer for p in prompts] == [
        "34", "5", "x", "7", "27.0", "22099999999999998951424", "0.10",
    ]  # fmt: skip
    assert prompts[0].messages == tuple(chat)
    assert prompts[2].id == "3" and prompts[6].id.startswith("text-")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"prompt": "q"}',
            r"row 1 \(line 2\): answer None must be text or a number.*called.*label",
        ),
        ('{"prompt": "q", "answer": " "}', r"row 1 \(line 2\): answer ' ' is empty"),
        ('{"prompt": "q", "answer": true}', r"answer True must be text or a number"),
        ('{"prompt": "q", "answer": ["1", "2"]}', r"answer \['1', '2'\] must be"),
        ('{"answer": "1"}', r"prompt None must be text or a list.*called.*problem"),
        ('{"prompt": [], "answer": "1"}', r"prompt \[\] must be text"),
        ('{"prompt": " ", "answer": "1"}', r"prompt ' ' is empty"),
        ('{"prompt": ["x"], "answer": "1"}', r"prompt 'x' is not a chat turn"),
        (
            '{"prompt": [{"role": "bot", "content": "x"}], "answer": "1"}',
            r"prompt role 'bot' is unknown; use one of",
        ),
        (
            '{"prompt": [{"role": "user", "content": [1]}], "answer": "1"}',
            r"prompt content \[1\] is not text",
        ),
        (
            '{"prompt": [{"role": "assistant", "content": "x"}], "answer": "1"}',
            r"is the last turn; a prompt must end in a user turn",
        ),
        ('{"prompt": "\\ud800", "answer": "1"}', r"prompt '\\ud800' is half of a surrogate"),
        ('{"id": [1], "prompt": "q", "answer": "1"}', r"id \[1\] must be text or a number"),
        ('{"prompt": "q", "answer', r"row 1 \(line 2\): not valid JSON"),
        ('["q"]', r"row 1 \(line 2\): expected a JSON object, got \['q'\]"),
        (b'{"prompt": "\xff"}', r"row 1 \(line 2\): not UTF-8 at byte 12"),
        ('{"a": ' * 5000, r"row 1 \(line 2\): not valid JSON"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str | bytes, message: str) -> None:
    file = lines(tmp_path, '{"prompt": "good", "answer": "1"}', line)
    with pytest.raises(DataError, match=message) as caught:
        load_prompts(file)
    assert str(caught.value).startswith(file) and len(str(caught.value)) < 1000


def test_bad_files(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_bytes(b"")
    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "b.parquet").write_text("version https://git-lfs.github.com/spec/v1\noid x")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 cut off")
    for name, message in (
        ("question.jsonl", "no such prompt file; did you mean 'questions.jsonl'"),
        ("questions.jsonl", "has no rows"),
        ("a.csv", r"unknown suffix '.csv'; known formats are .jsonl, .ndjson, .parquet"),
        ("b.parquet", "run 'git lfs pull'"),
        ("c.parquet", "not a readable parquet file"),
        (".", "is a folder"),
    ):
        with pytest.raises(DataError, match=message):
            load_prompts(str(tmp_path / name))


def parquet(tmp_path: Path, columns: dict[str, pa.Array]) -> str:
    file = tmp_path / "set.parquet"
    pq.write_table(pa.table(columns), file, row_group_size=2)
    return str(file)


def test_verl_layout_with_nulls_and_large_types(tmp_path: Path) -> None:
    turn = pa.struct(
        [("role", pa.large_string()), ("content", pa.large_string()), ("x", pa.int8())]
    )
    chats = [[{"role": "user", "content": f"q{i}", "x": None}] for i in range(4)]
    file = parquet(
        tmp_path,
        {
            "prompt": pa.array(chats, pa.large_list(turn)),
            "reward_model": pa.array(
                [{"ground_truth": "1"}, None, {"ground_truth": None}, {"ground_truth": "4"}]
            ),
            "answer": pa.array([9, 2, 3, 9]),
            "extra_info": pa.array([{"index": 1.0}, {"index": None}, None, {"index": 3.0}]),
            "junk": pa.array([b"\xff"] * 4),
        },
    )
    prompts = load_prompts(file)
    assert [p.answer for p in prompts] == ["1", "2", "3", "4"], "first column that is not null"
    assert [p.id for p in prompts][::3] == ["1", "3"]
    assert all(p.id.startswith("text-") for p in prompts[1:3])
    assert prompts[3].messages == ({"role": "user", "content": "q3"},)


def test_parquet_refusals(tmp_path: Path) -> None:
    text = pa.array(["q"])
    with pytest.raises(DataError, match=r"no column for field 'answer'.*the file has prompt, x"):
        load_prompts(parquet(tmp_path, {"prompt": text, "x": text}))
    with pytest.raises(DataError, match="no column for field 'prompt'; looked for task"):
        load_prompts(parquet(tmp_path, {"prompt": text, "answer": text}), prompt_key="task")
    with pytest.raises(DataError, match=r"row 0: answer 1e\+22 is a float beyond 2\*\*53"):
        load_prompts(parquet(tmp_path, {"prompt": text, "answer": pa.array([1e22])}))
    with pytest.raises(DataError, match="row 1: prompt None must be text"):
        column = pa.array([[{"role": "user", "content": "q"}], None])
        load_prompts(parquet(tmp_path, {"prompt": column, "answer": pa.array(["1", "2"])}))
    with pytest.raises(DataError, match="row 0: prompt role None is unknown"):
        column = pa.array([[{"content": "q"}]])
        load_prompts(parquet(tmp_path, {"prompt": column, "answer": text}))


def test_damaged_page_is_an_error_not_a_short_file(tmp_path: Path) -> None:
    rows = 5000
    content = pa.array([f"question {i} {i * 7919}" for i in range(rows)])
    file = Path(parquet(tmp_path, {"prompt": content, "answer": pa.array(["1"] * rows)}))
    data = bytearray(file.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4000] = b"\xff" * 4000
    file.write_bytes(bytes(data))
    with pytest.raises(DataError, match=r"damaged|not a readable"):
        load_prompts(str(file))


def test_prompt_is_frozen() -> None:
    prompt = Prompt("1", ({"role": "user", "content": "q"},), "2", "set")
    with pytest.raises(AttributeError):
        prompt.answer = "3"  # type: ignore[misc]
