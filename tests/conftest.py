# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Fixtures that the whole session shares: gloo worlds and tiny model folders."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.world import World

# The tests run several processes at a time; more threads in each would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Property tests: the same examples in every run of CI, and HYPOTHESIS_PROFILE=thorough for many
# others, drawn anew each time. Fixtures of these tests choose an implementation; they need no reset
# between examples.
settings.register_profile(
    "ci",
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "thorough", settings.get_profile("ci"), max_examples=1000, derandomize=False, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def world() -> Iterator[Callable[[int], World]]:
    """world(n): the session's world of n ranks, started at its first use."""
    worlds: dict[int, World] = {}

    def of_size(size: int) -> World:
        return worlds.setdefault(size, World(size))

    yield of_size
    for started in worlds.values():
        started.close()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """tiny_model(kind): the folder of a random model, made at its first use (see tests/tiny.py)."""
    made: dict[str, Path] = {}

    def of_kind(kind: str) -> Path:
        if kind not in made:
            from tests.tiny import make_model

            made[kind] = make_model(tmp_path_factory.mktemp("models") / kind, kind)
        return made[kind]

    return of_kind


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base model of examples/run_cvpo_tiny.sh; half a minute, at its first use."""
    folder = tmp_path_factory.mktemp("tiny") / "base"
    root = Path(__file__).parents[1]
    script = root / "examples" / "models" / "make_tiny_base.py"
    subprocess.run([sys.executable, script, "--output", folder], check=True, cwd=root)
    return folder
