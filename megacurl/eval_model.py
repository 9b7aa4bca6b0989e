# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The model that ``megacurl eval`` scores, and errors that all ranks raise together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import safe_open

from megacurl.config.errors import ConfigError, raise_problems
from megacurl.evaluation.settings import EvalArguments, is_hf_folder
from megacurl.megatron.checkpoint import find_checkpoint, read_run_state
from megacurl.megatron.groups import Grid
from megacurl.rollout.engine import RolloutEngine


@contextmanager
def policy_folder(arguments: EvalArguments, grid: Grid) -> Iterator[tuple[Path, int]]:
    """The Hugging Face folder of ``--model`` and the RL step of its weights.

    A checkpoint is exported to a temporary folder beside ``--output`` (every rank must see it),
    which goes again at the end.
    """
    model = Path(arguments.model)
    if is_hf_folder(model):
        yield model, 0
        return
    output = Path(arguments.output).resolve()
    folder = output.with_name(f".{output.name}.model")
    try:
        with agreed_by_all(grid, f"--model {model}"):
            checkpoint = _find(model)
            step = int(read_run_state(checkpoint)["step"])
            if grid.rank == 0:
                shutil.rmtree(folder, ignore_errors=True)
                _export_apart(checkpoint, folder)
        yield folder, step
    finally:
        if grid.rank == 0:
            shutil.rmtree(folder, ignore_errors=True)


def _find(model: Path) -> Path:
    try:
        return find_checkpoint(model)
    except FileNotFoundError as error:
        raise ConfigError(
            f"--model {model} is a run without a complete checkpoint (step_*/run.json)"
        ) from error


def _export_apart(checkpoint: Path, folder: Path) -> None:
    """``megacurl export`` in a process of its own.

    It needs a world of one, which this process cannot enter while it is in torchrun's, and its
    copy of the model goes with it.
    """
    outer = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in outer and not name.startswith(("TORCHELASTIC_", "GROUP_", "ROLE_"))
    }
    command = [sys.executable, "-m", "megacurl", "export"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        done = subprocess.run(
            [*command, "--load", str(checkpoint), "--output", str(folder)],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
        log.seek(0)
        lines = log.read().strip().splitlines()
    if done.returncode != 0:
        reason = lines[-1] if lines else f"exit code {done.returncode}"
        raise ConfigError(
            f"--model {checkpoint} cannot be exported: {reason.removeprefix('megacurl: ')}"
        )


def start_engine(engine: RolloutEngine, folder: Path, model: str) -> None:
    """Start the engine. It finds that a damaged model does not work; this finds the damage."""
    try:
        engine.start()
    except ValueError:
        for file in sorted(folder.glob("*.safetensors")):
            with safe_open(file, framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 (safe_open is no mapping)
                    if not torch.isfinite(tensors.get_tensor(name)).all():
                        raise ConfigError(
                            f"--model {model}: {name} in {file.name} holds NaN or infinity; take "
                            "another checkpoint"
                        ) from None
        raise


@contextmanager
def agreed_by_all(grid: Grid, subject: str) -> Iterator[None]:
    """Run the body on every rank; if it failed anywhere, raise the same ConfigError everywhere.

    Otherwise ranks without the error would wait for the others, and an error on a rank other
    than the first would be seen by nobody.
    """
    problem: str | None = None
    try:
        yield
    except ConfigError as error:
        problem = str(error)
    except Exception as error:
        # Libraries' errors go on for pages; their first line says what happened.
        lines = str(error).strip().splitlines() or ["no message"]
        problem = f"{subject}: {type(error).__name__}: {lines[0]}"
    raise_problems(dict.fromkeys(filter(None, grid.gather_objects(problem))))
