# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The parts that docs/extending.md adds, each in a file of its own, work in a run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from megacurl.observe.sinks.jsonl import read_rows
from megacurl.rewards import registry
from tests.e2e.test_resume import questions

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"


def files() -> dict[str, str]:
    """Path -> content of every Python file that the page shows."""
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    return dict(blocks)


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """A copy of the package with the page's files in it."""
    shutil.copytree(
        ROOT / "megacurl", tmp_path / "megacurl", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, content in files().items():
        target = tmp_path / name
        assert not target.exists(), f"{name} would replace a file"
        target.write_text(content)
    return tmp_path


def test_reinforce_plus_plus_on_unsolved_questions(
    extended: Path, tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "megacurl", "train", "--run-dir", str(tmp_path / "run")]
    command += ["--hf-checkpoint", str(tiny_model("qwen2-tied")), "--verifier", "coin_flip"]
    command += ["--prompt-data", str(questions(tmp_path)), "--train-iters", "2", "--lr", "1e-3"]
    command += ["--rollout-batch-size", "4", "--n-samples-per-prompt", "2"]
    command += ["--rollout-max-prompt-len", "64", "--rollout-max-response-len", "6"]
    command += ["--max-tokens-per-micro-batch", "128", "--no-export-hf", "--no-tensorboard"]
    shown = re.search(r"```\nmegacurl train (.*?) \.\.\.\n```", PAGE.read_text(), flags=re.DOTALL)
    assert shown
    command += [*shown[1].replace("\\\n", " ").split(), "--sampling", "unsolved"]
    environment = {**os.environ, "PYTHONPATH": str(extended)}
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")[1:]
    assert len(rows) == 2
    assert all(row["actor/grad_norm"] > 0 for row in rows)
    assert all(0 <= row["sampling/shortfall"] < 4 for row in rows)
    assert not any(name.startswith("critic/") for name in rows[-1])


def test_a_verifier(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.verifier_names()  # imports those that exist
    monkeypatch.setattr(registry._VERIFIERS, "_entries", dict(registry._VERIFIERS._entries))
    exec(files()["megacurl/rewards/ends_with.py"], {"__name__": "ends_with"})
    verifier = registry.get_verifier("ends_with")
    assert verifier("it is 42 ", "42", finished=True).correct
    assert not verifier("it is 4", "42", finished=True).correct
    # The decorator of a dataclass looks its module up.
    graded = ModuleType("mentions")
    monkeypatch.setitem(sys.modules, "mentions", graded)
    exec(files()["megacurl/rewards/mentions.py"], vars(graded))
    verdict = registry.get_verifier("mentions", correct_threshold=0.5)(
        "a cat", "cat dog", finished=True
    )
    assert (verdict.score, verdict.correct) == (0.5, True)
    assert not registry.get_verifier("mentions")("a cat", "cat dog", finished=True).correct
