# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Test programs, compiled at their first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.csrc.build import BUILDS, CSRC, HAS_COMPILER, compile_test


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """program(name, build): ``csrc/tests/NAME.cpp``, build: a key of BUILDS."""
    if not HAS_COMPILER:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("programs")
    built: dict[str, Path] = {}

    def of(name: str, build: str) -> Path:
        key = f"{name}-{build}"
        if key not in built:
            source = CSRC / "tests" / f"{name}.cpp"
            built[key] = compile_test(source, folder / key, BUILDS[build])
        return built[key]

    return of
