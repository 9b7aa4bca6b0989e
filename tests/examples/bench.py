# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A folder to run the example scripts in, and what they hand to torchrun there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

RECORDER = """#!/usr/bin/env bash
printf '%s\\0' "$@" >"$RECORD_ARGUMENTS"
env >"$RECORD_ENVIRONMENT"
"""


@dataclass
class Bench:
    """A folder to run scripts in, with a torchrun that records what it is given."""

    folder: Path
    model: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "bin").mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
            "PATH": ":".join(
                [str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "PYTHONPATH": str(ROOT),
            "MEGACURL_SKIP_SETUP": "1",
            "RECORD_ARGUMENTS": str(self.folder / "arguments"),
            "RECORD_ENVIRONMENT": str(self.folder / "environment"),
            "SLEEPER_PID": str(self.folder / "pid"),
        }
        self.put("torchrun", RECORDER)

    def put(self, name: str, text: str) -> None:
        """Place an executable first on PATH."""
        path = self.folder / "bin" / name
        path.write_text(text, "utf-8")
        path.chmod(0o755)

    def command(self, script: str, *flags: str) -> list[str]:
        """Return the command line of a script."""
        return ["bash", str(ROOT / "examples" / f"{script}.sh"), *flags]

    def run(
        self, script: str, *flags: str, timeout: float = 60, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script to its end."""
        return subprocess.run(
            self.command(script, *flags),
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def tiny(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run the tiny example on a base that is already there."""
        return self.run("run_cvpo_tiny", "--base", str(self.model), *flags)

    @property
    def launched(self) -> bool:
        """Whether torchrun was reached."""
        return (self.folder / "arguments").exists()

    def recorded(self) -> tuple[list[str], list[str]]:
        """Return torchrun's own arguments and those of ``megacurl train``."""
        arguments = (self.folder / "arguments").read_text("utf-8").split("\0")[:-1]
        at = arguments.index("-m")
        assert arguments[at : at + 3] == ["-m", "megacurl", "train"]
        return arguments[:at], arguments[at + 3 :]

    @property
    def processes(self) -> int:
        """The number of processes that torchrun was asked for."""
        own, _ = self.recorded()
        return int(own[own.index("--nproc-per-node") + 1])

    def recorded_environment(self) -> dict[str, str]:
        """Return the environment that torchrun was started in."""
        lines = (self.folder / "environment").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)
