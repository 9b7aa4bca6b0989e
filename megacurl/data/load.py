# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Loads a prompt file into memory: stream, check, remove duplicates, keep first occurrences."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal

from megacurl.data.errors import DataError, shown
from megacurl.data.prompt import Prompt
from megacurl.data.rows import RowParser
from megacurl.data.source import choose_columns, open_source

logger = logging.getLogger(__name__)

Dedupe = Literal["id", "text", "none"]
Conflicts = Literal["first", "drop", "error"]


@dataclass(frozen=True)
class PromptSet:
    """Loaded prompts and what was left out: rows = len(prompts) + duplicates + dropped."""

    prompts: list[Prompt]
    rows: int
    duplicates: int
    conflicts: int
    dropped: int


def load_prompts(
    path: str,
    *,
    dedupe: Dedupe = "id",
    conflicts: Conflicts = "first",
    prompt_key: str | None = None,
    answer_key: str | None = None,
    instruction: str | None = None,
) -> list[Prompt]:
    """The prompts of a .parquet or .jsonl file ("FILE" or "FILE@[a:b]"), in file order.

    dedupe: "id" keeps one row for each (data_source, id), "text" one for each question text
        (outer blanks of a turn do not count), "none" keeps all. A row without an id gets one made
        from its text. Ids in the result are unique: a repeated one gets "#2", "#3", ... appended.
    conflicts: what to do with duplicates whose answers differ: keep the "first" row, "drop" all
        of them, or raise an "error". Under dedupe="id" the same id on two different questions is
        an error too unless "drop" is chosen: keeping the first would silently lose a question.
    prompt_key, answer_key: column names (dotted for nested ones) instead of the usual ones.
    instruction: template with "{problem}", put around the question (see rows.DAPO_INSTRUCTION).

    Memory holds the kept prompts only, whatever the file's size. Raises DataError, which names
    file, row, field, value and the fix.
    """
    return load_prompt_set(
        path,
        dedupe=dedupe,
        conflicts=conflicts,
        prompt_key=prompt_key,
        answer_key=answer_key,
        instruction=instruction,
    ).prompts


def load_prompt_set(
    path: str,
    *,
    dedupe: Dedupe = "id",
    conflicts: Conflicts = "first",
    prompt_key: str | None = None,
    answer_key: str | None = None,
    instruction: str | None = None,
) -> PromptSet:
    """`load_prompts` together with the counts of what was removed."""
    _check_choice("dedupe", dedupe, ("id", "text", "none"))
    _check_choice("conflicts", conflicts, ("first", "drop", "error"))
    source = open_source(path)
    parse = RowParser(source.path, instruction)
    collector = _Collector(str(source.path), dedupe, conflicts)
    for raw in source.read(choose_columns(prompt_key, answer_key)):
        prompt, digest = parse(raw)
        collector.add(raw.row, prompt, digest)
    result = collector.result()
    if not result.prompts:
        raise DataError(f"{path}: every row was dropped as a conflict; use --conflicts first")
    logger.info(
        "%s: %d rows -> %d prompts (%d duplicates, %d conflicting, %d dropped)",
        path, result.rows, len(result.prompts),
        result.duplicates, result.conflicts, result.dropped,
    )  # fmt: skip
    return result


@dataclass(frozen=True, slots=True)
class _Kept:
    row: int
    digest: bytes
    prompt: Prompt


class _Collector:
    """First occurrence of each key, and the keys whose copies contradict each other."""

    def __init__(self, file: str, dedupe: Dedupe, conflicts: Conflicts) -> None:
        self._file = file
        self._dedupe = dedupe
        self._conflicts = conflicts
        self._kept: dict[Hashable, _Kept] = {}
        self._conflicting: set[Hashable] = set()
        self._copies: dict[Hashable, int] = {}
        self._rows = 0

    def add(self, row: int, prompt: Prompt, digest: bytes) -> None:
        self._rows += 1
        key: Hashable = {
            "id": (prompt.data_source, prompt.id),
            "text": digest,
            "none": row,
        }[self._dedupe]
        kept = self._kept.setdefault(key, _Kept(row, digest, prompt))
        if kept.row == row:
            return
        self._copies[key] = self._copies.get(key, 0) + 1
        other_text, other_answer = kept.digest != digest, kept.prompt.answer != prompt.answer
        if other_text or other_answer:
            self._conflicting.add(key)
            if self._conflicts == "error" or (self._conflicts == "first" and other_text):
                raise self._clash(kept, row, prompt, other_text)

    def result(self) -> PromptSet:
        dropped = self._conflicting if self._conflicts == "drop" else set()
        gone = sum(1 + self._copies[key] for key in dropped)
        prompts = _unique_ids(
            [kept.prompt for key, kept in self._kept.items() if key not in dropped]
        )
        return PromptSet(
            prompts=prompts,
            rows=self._rows,
            duplicates=self._rows - gone - len(prompts),
            conflicts=len(self._conflicting),
            dropped=gone,
        )

    def _clash(self, kept: _Kept, row: int, prompt: Prompt, other_text: bool) -> DataError:
        same = f"id {shown(prompt.id)}" if self._dedupe == "id" else "the same question"
        if other_text:
            return DataError(
                f"{self._file}, rows {kept.row} and {row}: {same} names two different questions; "
                "use --dedupe text (or none), or --conflicts drop"
            )
        return DataError(
            f"{self._file}, rows {kept.row} and {row}: {same} has two answers, "
            f"{shown(kept.prompt.answer)} and {shown(prompt.answer)}; correct the file, or use "
            "--conflicts first or drop"
        )


def _unique_ids(prompts: list[Prompt]) -> list[Prompt]:
    taken = {prompt.id for prompt in prompts}
    seen: dict[str, int] = {}
    unique: list[Prompt] = []
    for prompt in prompts:
        count = seen.get(prompt.id, 0) + 1
        name = prompt.id
        while count > 1 and (name := f"{prompt.id}#{count}") in taken:
            count += 1
        seen[prompt.id] = count
        taken.add(name)
        unique.append(prompt if name == prompt.id else replace(prompt, id=name))
    return unique


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise DataError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, allowed))}")
