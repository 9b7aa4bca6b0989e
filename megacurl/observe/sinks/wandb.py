# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Weights & Biases, for those who have it: RUN/wandb, offline unless a login is configured.

WANDB_MODE, WANDB_PROJECT, WANDB_ENTITY and the other variables of the package keep their meaning.
"""

from __future__ import annotations

import netrc
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from megacurl.utils.files import atomic_write_text

try:
    import wandb
except ImportError as error:
    raise ImportError(
        "the wandb sink needs the package 'wandb': pip install 'megacurl[wandb]', or leave "
        "'wandb' out of the sinks"
    ) from error

_ID_FILE = "wandb_run_id.txt"


class WandbSink:
    """Log to one wandb run; a resumed run goes on with the same id.

    wandb cannot rewrite history, so steps it already has are left as they are. A resumed run
    repeats their numbers exactly; only the times differ.
    """

    def __init__(self, run_dir: Path, resume_step: int | None) -> None:
        """Start or resume the wandb run. Raises wandb's own errors (bad key, no network)."""
        run_dir.mkdir(parents=True, exist_ok=True)
        mode = None if "WANDB_MODE" in os.environ else _default_mode()
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "megacurl"),
            name=run_dir.name,
            id=_run_id(run_dir / _ID_FILE, resume_step),
            dir=str(run_dir),
            mode=mode,
            resume="allow",
            settings=wandb.Settings(console="off"),
        )
        self._first_step = int(self._run.step)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Hand the metrics of one step to wandb, which sends them in the background."""
        if step >= self._first_step:
            self._run.log(dict(metrics), step=step, commit=True)

    def close(self) -> None:
        """Send what is left and end the run."""
        self._run.finish()


def open_sink(run_dir: Path, resume_step: int | None) -> WandbSink:
    """Open the wandb run of ``run_dir``. Raises ImportError without the wandb package."""
    return WandbSink(run_dir, resume_step)


def _run_id(path: Path, resume_step: int | None) -> str:
    if resume_step is not None and resume_step >= 0 and path.exists():
        return path.read_text(encoding="utf-8").strip()
    run_id = secrets.token_hex(4)
    atomic_write_text(path, run_id + "\n")
    return run_id


def _default_mode() -> str:
    """Online with a configured login: never the interactive question, which would hang a job."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return "online"
    host = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        logins = netrc.netrc(os.environ.get("NETRC") or None)
    except (OSError, netrc.NetrcParseError):
        return "offline"
    return "online" if host in logins.hosts else "offline"
