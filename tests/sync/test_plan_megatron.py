# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The plan against the networks that Megatron builds on every rank."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["qwen2-tied", "llama-untied"])
def test_engines_get_what_megatron_ranks_hold(kind: str, tiny_model: Callable[[str], Path]) -> None:
    command = [sys.executable, "-m", "tests.sync.megatron_ranks", str(tiny_model(kind))]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["checked 8 ranks", "checked 4 ranks", "checked 8 ranks"]
