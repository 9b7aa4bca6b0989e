# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Benchmark files as question sets."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from megacurl.config.errors import ConfigError
from megacurl.evaluation.question_set import encode_question_set, read_question_sets
from tests.tiny import byte_tokenizer

AIME = Path(__file__).parents[1] / "fixtures" / "data" / "dapo_aime-2024_published.parquet"


def test_slices_names_and_repeated_rows(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    rows = (f'{{"id": "q{i}", "prompt": "1 + {i}?", "answer": "{1 + i}"}}\n' for i in range(5))
    file.write_text("".join(rows))
    specs = [f"{file}@[1:3]", f"all={file}", f"aime={AIME}", f"part={AIME}@[:40]"]
    first, whole, aime, part = read_question_sets(specs, "--data", "Solve {problem} now.")
    assert (first.spec.name, [p.id for p in first.prompts]) == ("many", ["q1", "q2"])
    assert first.prompts[0].text == "Solve 1 + 1? now."
    assert len(whole.prompts) == 5
    assert len(aime.prompts) == 30, "960 rows of 30 questions"
    assert 0 < len(part.prompts) <= 30


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        ("", "", "has no rows"),
        ('{"id": "a", "prompt": "1?"}\n', "", "answer None must be"),
        ('{"id": "a", "prompt": "1?", "answer": "1"}\n', "@[3:]", "the row range is empty"),
        ('{"id": "a", "prompt": "1?", "answer": "1"}\n', "@[1:0]", "the row range is empty"),
        (
            '{"id": "a", "prompt": "1?", "answer": "1"}\n{"id": "a", "prompt": "1?", "answer": 2}',
            "",
            "id 'a' has two answers",
        ),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, rows: str, message: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(text)
    entry = f"quiz={file}{rows}"
    with pytest.raises(ConfigError) as caught:
        read_question_sets([entry], "--data", None)
    assert str(caught.value).startswith(f"--data {entry}: ")
    assert message in str(caught.value)


def test_a_prompt_that_is_too_long_is_refused() -> None:
    (aime,) = read_question_sets([f"aime={AIME}"], "--data", None)
    tokenizer = byte_tokenizer()
    encode = functools.partial(encode_question_set, aime, tokenizer, flag="--max-prompt-len")
    items = encode(apply_chat_template=True, max_prompt_len=10**4)
    assert [prompt for prompt, _ in items] == aime.prompts
    lengths = sorted(len(ids) for _, ids in items)
    with pytest.raises(ConfigError) as caught:
        encode(apply_chat_template=True, max_prompt_len=lengths[-3])
    assert str(caught.value).startswith(
        f"aime: 2 of 30 prompts are longer than --max-prompt-len {lengths[-3]}; "
        f"raise it to {lengths[-1]}"
    )
