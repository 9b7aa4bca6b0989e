# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Environments of their own for the libraries that benchmarks compare with."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent / "peers"


def peer_python(name: str, folder: Path) -> Path:
    """Return the interpreter of the environment ``peers/NAME.txt``, made in ``folder`` at need.

    Raises SystemExit with pip's message if a package is not to be had.
    """
    requirements = REQUIREMENTS / f"{name}.txt"
    home = folder.resolve() / name
    python = home / "bin" / "python"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = home / ".installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    print(f"installing {requirements.name} into {home} ...", file=sys.stderr, flush=True)
    venv.create(home, with_pip=True)
    # The file lists every package with its version: nothing to solve, the same on every machine.
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r", str(requirements)]
    done = subprocess.run([python, *install], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"error: {requirements.name} could not be installed:\n{done.stderr}")
    stamp.write_text(wanted)
    return python
