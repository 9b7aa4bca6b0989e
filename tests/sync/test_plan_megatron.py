# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The plan against the networks that Megatron builds on every rank."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_engines_get_what_megatron_ranks_hold(tiny_model: Callable[[str], Path]) -> None:
    models = [str(tiny_model(kind)) for kind in ("qwen2-tied", "llama-untied")]
    command = [sys.executable, "-m", "tests.sync.megatron_ranks", *models]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"checked {n} ranks" for n in (8, 4, 8)] * 2
