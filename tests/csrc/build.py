# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ programs of ``csrc/tests``, each once a session."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CSRC = Path(__file__).resolve().parents[2] / "csrc"
CXX = os.environ.get("CXX", "g++")
HAS_COMPILER = shutil.which(CXX.split()[0]) is not None
PLAIN = ("-O1",)
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
THREADS = ("-O1", "-g", "-fsanitize=thread")
BUILDS = {"plain": PLAIN, "sanitized": SANITIZED, "threads": THREADS}
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")


def compile_test(source: Path, target: Path, flags: tuple[str, ...], *more: str) -> Path:
    """Compile ``CSRC/tests/NAME.cpp``, or one of a copy of the sources; warnings are errors."""
    includes = [f"-I{source.parents[1] / 'include'}", f"-I{source.parents[1]}"]
    _call(
        *flags, *more, "-include", str(_prelude(flags)), *includes, str(source), "-o", str(target)
    )
    return target


@functools.cache
def _prelude(flags: tuple[str, ...]) -> Path:
    """Precompile the standard headers for a set of flags; the compiler finds NAME.gch by NAME."""
    # The object lives as long as the cache, and removes its folder when the session ends.
    folder = _keep(tempfile.TemporaryDirectory(prefix="megacurl-prelude-"))
    header = Path(shutil.copy(CSRC / "tests" / "prelude.hpp", folder))
    _call(*flags, "-x", "c++-header", str(header), "-o", f"{header}.gch")
    return header


_kept: list[tempfile.TemporaryDirectory[str]] = []


def _keep(folder: tempfile.TemporaryDirectory[str]) -> str:
    _kept.append(folder)
    return folder.name


def _call(*arguments: str) -> None:
    done = subprocess.run(
        [*CXX.split(), "-std=c++20", *WARNINGS, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a test program; a sanitizer's finding or the emulator's makes its exit code nonzero."""
    return subprocess.run(
        [str(program), *arguments],
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
