# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A model folder, questions, and settings that nothing is wrong with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.fields import unflatten
from megacurl.config.schema import Config

EXAMPLE_MODEL = Path(__file__).parents[2] / "examples" / "models" / "qwen2.5-7b"


@pytest.fixture(scope="session")
def qwen_7b_folder() -> Path:
    """The example folder that holds Qwen2.5-7B's config.json and nothing else."""
    return EXAMPLE_MODEL


@pytest.fixture
def qwen_7b() -> dict[str, Any]:
    """Qwen2.5-7B's config.json, parsed."""
    parsed: dict[str, Any] = json.loads((EXAMPLE_MODEL / "config.json").read_text())
    return parsed


@pytest.fixture
def make_config(tmp_path: Path, qwen_7b: dict[str, Any]) -> Callable[..., Config]:
    """Settings of a run whose files exist; keywords replace fields."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(qwen_7b))
    (model / "model.safetensors").touch()
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"problem": "1+1?", "answer": "2"}\n')
    usable: dict[str, object] = {
        "hf_checkpoint": str(model),
        "prompt_data": str(questions),
        "run_dir": str(tmp_path / "run"),
    }

    def make(**fields: object) -> Config:
        return unflatten({**usable, **fields})

    return make
