# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One question with its reference answer, as every later stage sees it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Message = dict[str, str]


@dataclass(frozen=True)
class Prompt:
    """A question to roll out.

    id: unique within one loaded list, stable between runs over the same file.
    messages: chat turns, each {"role", "content"}; the last one is a user turn.
    answer: reference answer. Always text: real sets hold integers beyond int64 and LaTeX.
    data_source: name used to group metrics (the file's column, else the file's stem).
    level: difficulty label of the file, if it has one.
    """

    id: str
    messages: tuple[Message, ...]
    answer: str
    data_source: str
    level: str | None = None

    @property
    def text(self) -> str:
        """All turns joined by a blank line (no chat template)."""
        return "\n\n".join(message["content"] for message in self.messages)


def text_digest(messages: Sequence[Message]) -> bytes:
    """16 bytes that identify a question by its turns; outer blanks of a turn do not count.

    Raises UnicodeEncodeError when a turn holds a lone surrogate, which no tokenizer can encode.
    """
    digest = hashlib.blake2b(digest_size=16)
    for message in messages:
        for part in (message["role"], message["content"].strip()):
            encoded = part.encode("utf-8")
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
    return digest.digest()


def fingerprint(prompts: Iterable[Prompt]) -> str:
    """32 hex characters that change with any question, answer, id or the order of the list."""
    digest = hashlib.blake2b(digest_size=16)
    for prompt in prompts:
        for part in (prompt.id, prompt.answer):
            encoded = part.encode("utf-8")
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
        digest.update(text_digest(prompt.messages))
    return digest.hexdigest()
