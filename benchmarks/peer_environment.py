# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Environments of the libraries that benchmarks compare with, apart from MegaCURL's.

Each is made once, from a file in ``peers/`` that pins every package, so that pip need not solve.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parent / "peers"
_STAMP = "peers-requirements"  # hash of what was installed; written last


def make_environment(folder: Path, requirements: Path) -> Path:
    """The python of an environment in ``folder`` with what the file ``requirements`` names.

    One that is there is taken as it is; one that was interrupted, or made for other versions, is
    made anew. ``MEGACURL_TORCH_INDEX`` is the package index of torch alone, as in tools/setup.sh.

    Raises RuntimeError with the end of pip's output, or for a folder that is something else.
    """
    python, stamp = folder / "bin" / "python", folder / _STAMP
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    if folder.exists() and any(folder.iterdir()):
        if not stamp.is_file():
            raise RuntimeError(f"{folder} holds something else; name another folder")
        shutil.rmtree(folder)
    print(f"installing {requirements.name} into {folder} ...", file=sys.stderr, flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text("unfinished")
    _run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    if index := os.environ.get("MEGACURL_TORCH_INDEX"):
        _run([*pip, "--constraint", str(requirements), "--index-url", index, "torch"])
    # Whole lists: what they contradict each other in is not used.
    _run([*pip, "--no-deps", "--requirement", str(requirements)])
    stamp.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stdout + done.stderr).splitlines()[-20:]
        raise RuntimeError("\n".join([*last, f"failed: {' '.join(command)}"]))
