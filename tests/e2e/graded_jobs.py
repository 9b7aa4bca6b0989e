# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Lists of answers that an untrained model hits by chance, and a run that is graded on them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from megacurl.config.schema import Config
from megacurl.rewards.list_answers import ListAnswers
from megacurl.rewards.registry import register_verifier
from megacurl.rewards.verdict import Verdict
from tests import jobs


@register_verifier("digits_of_bytes")
@dataclass(frozen=True)
class DigitsOfBytes(ListAnswers):
    """``list_answers`` of the characters, each read as a number from 0 to 3."""

    def __call__(self, response: str, answer: str, *, finished: bool) -> Verdict:
        numbers = ", ".join(str(ord(character) % 4) for character in response)
        return super().__call__(f"Answer: {numbers}", answer, finished=True)


def questions(folder: Path) -> Path:
    """Seven questions whose answers are lists of six numbers."""
    path = folder / "lists.jsonl"
    rows = [
        {"id": f"q{i}", "prompt": f"{i}?", "answer": ", ".join(str((i * k) % 4) for k in range(6))}
        for i in range(7)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run_training(config: Config) -> None:
    """Train; a rank that runs this knows the verifier, because it imported the module."""
    jobs.run_training(config)
