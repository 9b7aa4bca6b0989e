# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The stored responses of an evaluation: one JSON line each, enough to count every score again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from megacurl.utils.files import atomic_write_text


@dataclass(frozen=True, slots=True)
class Response:
    """A judged response.

    Attributes:
        id: the question's id.
        sample: number of the response to that question, from 0.
        text: the response without special tokens.
        answer: reference answer.
        extracted: final answer that the verifier found, or None.
        correct: the verdict.
        timeout: the verifier gave the comparison up.
        error: exception that the verifier raised, or None.
        finish_reason: "stop", or "length" when cut at the limit.
        tokens: length, the stop token included.
        score: the verifier's, in [0, 1]; 1 or 0 by ``correct`` where it gives no grades.
    """

    id: str
    sample: int
    text: str
    answer: str
    extracted: str | None
    correct: bool
    timeout: bool
    error: str | None
    finish_reason: str
    tokens: int
    score: float


def write_responses(path: str | Path, groups: Sequence[Sequence[Response]]) -> None:
    """Write [questions][k] responses in order, whole or not at all."""
    lines = (
        json.dumps(asdict(response), ensure_ascii=False) + "\n"
        for group in groups
        for response in group
    )
    # A byte-level model can produce half a surrogate pair; it must not cost the whole file.
    text = "".join(lines).encode("utf-8", errors="replace").decode("utf-8")
    atomic_write_text(path, text)


def read_responses(path: str | Path) -> list[list[Response]]:
    """Read what :func:`write_responses` wrote: [questions][k], in order.

    A file from before scores were stored has those of right and wrong. Raises ValueError naming
    file and line when a line is no response.
    """
    groups: dict[str, list[Response]] = {}
    names = {field.name for field in fields(Response)}
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: no JSON ({error})") from error
            if isinstance(row, dict) and "correct" in row:
                row.setdefault("score", float(row["correct"] is True))
            if not isinstance(row, dict) or set(row) != names:
                raise ValueError(f"{path}, line {number}: the fields must be {sorted(names)}")
            groups.setdefault(row["id"], []).append(Response(**row))
    return list(groups.values())
