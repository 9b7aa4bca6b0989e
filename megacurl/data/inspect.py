# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What is in a prompt file, counted in one streaming pass before anyone trains on it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import Progress

from megacurl.data.answer_kind import answer_kind
from megacurl.data.errors import DataError
from megacurl.data.readers import Columns, RawRow
from megacurl.data.rows import RowParser
from megacurl.data.source import Source, choose_columns, open_source


@dataclass
class Inspection:
    """Counts over one file (or row range).

    rows: rows read; bad_rows of them could not be used (first_error tells why).
    distinct_by_id, distinct_by_text: what load_prompts keeps with dedupe="id" and "text".
    conflicting_texts: question texts that occur with two or more answers.
    conflicting_ids: ids that occur with two or more questions or answers.
    answer_kinds, data_sources: counted once for each id. longest_prompt: characters, all turns.
    turns: chat turns over all rows; system_turns of them have the role system.
    """

    path: str
    rows: int = 0
    bad_rows: int = 0
    first_error: str | None = None
    distinct_by_id: int = 0
    distinct_by_text: int = 0
    conflicting_texts: int = 0
    conflicting_ids: int = 0
    answer_kinds: Counter[str] = field(default_factory=Counter)
    data_sources: Counter[str] = field(default_factory=Counter)
    longest_prompt: int = 0
    turns: int = 0
    system_turns: int = 0


def inspect_file(
    path: str, *, prompt_key: str | None = None, answer_key: str | None = None
) -> Inspection:
    """Count what a prompt file holds. Bad rows are counted, not fatal.

    Streams; memory grows with the distinct questions only. A progress bar goes to stderr when
    that is a terminal. Raises DataError when the file itself cannot be read.
    """
    source = open_source(path)
    parse = RowParser(source.path)
    found = Inspection(path)
    ids: dict[tuple[str, str], tuple[bytes, str]] = {}
    texts: dict[bytes, str] = {}
    clashing_ids: set[tuple[str, str]] = set()
    clashing_texts: set[bytes] = set()
    for raw in _with_progress(source, choose_columns(prompt_key, answer_key)):
        found.rows += 1
        try:
            prompt, digest = parse(raw)
        except DataError as error:
            found.bad_rows += 1
            found.first_error = found.first_error or str(error)
            continue
        key = (prompt.data_source, prompt.id)
        if key not in ids:
            found.answer_kinds[answer_kind(prompt.answer)] += 1
            found.data_sources[prompt.data_source] += 1
        if ids.setdefault(key, (digest, prompt.answer)) != (digest, prompt.answer):
            clashing_ids.add(key)
        if texts.setdefault(digest, prompt.answer) != prompt.answer:
            clashing_texts.add(digest)
        found.longest_prompt = max(found.longest_prompt, len(prompt.text))
        found.turns += len(prompt.messages)
        found.system_turns += sum(m["role"] == "system" for m in prompt.messages)
    found.distinct_by_id, found.distinct_by_text = len(ids), len(texts)
    found.conflicting_ids, found.conflicting_texts = len(clashing_ids), len(clashing_texts)
    return found


def _with_progress(source: Source, columns: Columns) -> Iterator[RawRow]:
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(source.path.name, total=source.rows)
        for done, raw in enumerate(source.read(columns), start=1):
            if done % 4096 == 0:
                bar.update(task, completed=done)
            yield raw


def format_inspection(inspection: Inspection) -> str:
    """The counts as an aligned table of plain text, most frequent kinds first."""
    i = inspection
    table: list[tuple[str, str]] = [
        ("rows", f"{i.rows:,}"),
        ("  unusable", f"{i.bad_rows:,}"),
        ("distinct by id", f"{i.distinct_by_id:,}"),
        ("  ids that contradict", f"{i.conflicting_ids:,}"),
        ("distinct by text", f"{i.distinct_by_text:,}"),
        ("  texts with two answers", f"{i.conflicting_texts:,}"),
        ("longest prompt", f"{i.longest_prompt:,} characters"),
        ("chat turns", f"{i.turns:,}"),
        ("  of them system", f"{i.system_turns:,}"),
    ]
    table += [(f"answers: {kind}", f"{n:,}") for kind, n in i.answer_kinds.most_common()]
    table += [(f"source: {name}", f"{n:,}") for name, n in i.data_sources.most_common(20)]
    left = max(len(name) for name, _ in table)
    right = max(len(value.split()[0]) for _, value in table)
    lines = [i.path]
    for name, value in table:
        number, _, unit = value.partition(" ")
        lines.append(f"  {name:<{left}}  {number:>{right}} {unit}".rstrip())
    if len(i.data_sources) > 20:
        lines.append(f"  ... and {len(i.data_sources) - 20} more sources")
    if i.first_error:
        lines.append(f"  first unusable row: {i.first_error}")
    return "\n".join(lines)
