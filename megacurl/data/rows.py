# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Turns one raw row into a checked Prompt, or says which field of which row is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from megacurl.data.errors import DataError, shown
from megacurl.data.prompt import Message, Prompt, text_digest
from megacurl.data.readers import Columns, RawRow

ROLES = ("system", "developer", "user", "assistant", "tool")

# The sentence frame around every question of the published DAPO-Math-17k and AIME-2024 files
# (Apache-2.0). Give it as `instruction` to plain question files so that they are asked alike.
DAPO_INSTRUCTION = (
    "Solve the following math problem step by step. The last line of your response should be of "
    "the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
    "{problem}\n\n"
    'Remember to put your answer on its own line after "Answer:".'
)

_SLOT = "{problem}"
_PLACE = "remove the row, or put it in a column called {}"
_NO_PROMPT = _PLACE.format(" or ".join(Columns().prompt))
_NO_ANSWER = _PLACE.format(" or ".join(Columns().answer))


class RowParser:
    """Checks rows of one file and makes Prompts of them.

    instruction: template with one "{problem}", put around the user turn. A turn that already has
    the template around it is left alone.
    """

    def __init__(self, path: Path, instruction: str | None = None) -> None:
        if instruction is not None and instruction.count(_SLOT) != 1:
            raise DataError(
                f"instruction: {shown(instruction)} must contain {_SLOT} exactly once, at the "
                "place where the question goes"
            )
        self._path = path
        self._frame = tuple(instruction.split(_SLOT)) if instruction is not None else None

    def __call__(self, raw: RawRow) -> tuple[Prompt, bytes]:
        """The prompt and its text digest. Raises DataError naming file, row, field and value."""
        messages = self._messages(raw)
        try:
            digest = text_digest(messages)
        except UnicodeEncodeError as error:
            raise self._error(
                raw, "prompt", error.object[error.start : error.end],
                "is half of a surrogate pair; remove it or write the whole character",
            ) from error  # fmt: skip
        id_ = self._text(raw, "id", raw.id) or f"text-{digest.hex()[:16]}"
        source = self._text(raw, "data_source", raw.data_source) or self._path.stem
        level = self._text(raw, "level", raw.level)
        return Prompt(id_, messages, self._answer(raw), source, level), digest

    def _error(self, raw: RawRow, field: str, value: object, fix: str) -> DataError:
        line = f" (line {raw.line})" if raw.line is not None else ""
        return DataError(f"{self._path}, row {raw.row}{line}: {field} {shown(value)} {fix}")

    def _messages(self, raw: RawRow) -> tuple[Message, ...]:
        value = raw.prompt
        if isinstance(value, str):
            turns: list[Message] = [{"role": "user", "content": value}]
        elif isinstance(value, Sequence) and not isinstance(value, bytes) and value:
            turns = [self._turn(raw, turn) for turn in value]
        else:
            fix = f"must be text or a list of chat turns; {_NO_PROMPT}"
            raise self._error(raw, "prompt", value, fix)
        if turns[-1]["role"] != "user":
            fix = "is the last turn; a prompt must end in a user turn for the model to answer"
            raise self._error(raw, "prompt", turns[-1], fix)
        if not turns[-1]["content"].strip():
            raise self._error(raw, "prompt", turns[-1]["content"], "is empty; remove the row")
        if self._frame is not None:
            turns[-1] = {"role": "user", "content": self._framed(turns[-1]["content"])}
        return tuple(turns)

    def _framed(self, text: str) -> str:
        assert self._frame is not None
        before, after = self._frame
        if before + after and text.startswith(before) and text.endswith(after):
            return text
        return before + text + after

    def _turn(self, raw: RawRow, turn: object) -> Message:
        if not isinstance(turn, Mapping):
            fix = 'is not a chat turn; write {"role": "user", "content": "..."}'
            raise self._error(raw, "prompt", turn, fix)
        role, content = turn.get("role"), turn.get("content")
        if role not in ROLES:
            raise self._error(raw, "prompt role", role, f"is unknown; use one of {ROLES}")
        if not isinstance(content, str):
            fix = "is not text; only text turns can be trained on"
            raise self._error(raw, "prompt content", content, fix)
        return {"role": role, "content": content}

    def _answer(self, raw: RawRow) -> str:
        value = raw.answer
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        if isinstance(value, str):
            answer: str | None = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            answer = self._text(raw, "answer", value)
        else:
            fix = f"must be text or a number; {_NO_ANSWER}"
            raise self._error(raw, "answer", value, fix)
        if answer is None or not answer.strip():
            raise self._error(raw, "answer", value, "is empty; remove the row or fill it in")
        return answer.strip()

    def _text(self, raw: RawRow, field: str, value: object) -> str | None:
        """Scalars of any type as text: 3, 3.0 and "3" are the same id; NaN counts as missing."""
        if isinstance(value, float):
            if value != value:
                return None
            if not value.is_integer():
                return repr(value)
            if abs(value) > 2**53:
                fix = "is a float beyond 2**53, its last digits are lost; store it as text"
                raise self._error(raw, field, value, fix)
            return str(int(value))
        if isinstance(value, str | int):
            return str(value)
        if value is None:
            return None
        raise self._error(raw, field, value, "must be text or a number")
