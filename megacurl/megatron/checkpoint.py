# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a run: every rank's shards by dist_checkpointing, appearing whole or not at all.

``CHECKPOINTS/step_000040/`` holds ``actor/`` and ``critic/`` (model, optimizer, schedule; loadable
into another layout) and ``run.json`` (step, data cursor, curriculum …). It is written under another
name and renamed when every rank is done, so a killed run leaves only complete checkpoints.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from megatron.core import dist_checkpointing

from megacurl.config.errors import ConfigError
from megacurl.megatron import cpu
from megacurl.megatron.groups import Grid
from megacurl.megatron.trainable import Trainable, inner_optimizers
from megacurl.utils.files import atomic_write_json

_STEP = re.compile(r"step_(\d+)")
_RUN_STATE = "run.json"
# Optimizer state that is written for any TP, PP and DP to read.
_RESHARDABLE = {
    "distrib_optim_sharding_type": "fully_reshardable",
    "distrib_optim_fully_reshardable_mem_efficient": False,
}


def _sharded_state(part: Trainable, *, loading: bool) -> dict[str, Any]:
    _give_optimizer_state(part)
    model = part.network.sharded_state_dict()
    optimizer = part.optimizer.sharded_state_dict(
        {"model": model}, is_loading=loading, metadata=dict(_RESHARDABLE)
    )
    return {"model": model, "optimizer": optimizer, "steps": part.steps}


@cpu.on_megatron_device
def save_checkpoint(
    folder: Path,
    step: int,
    parts: Mapping[str, Trainable],
    run_state: dict[str, Any],
    grid: Grid,
    keep: int,
    *,
    write_more: Callable[[Path], None] | None = None,
) -> Path:
    """Write the checkpoint of ``step``; collective over all ranks.

    Args:
        folder: the run's checkpoint folder.
        step: completed steps.
        parts: what to save, by name.
        run_state: JSON-able state of everything else.
        keep: complete checkpoints that stay, this one included.
        write_more: writes further files into the folder; called on rank 0.
    """
    final = folder / f"step_{step:06d}"
    partial = folder / f".{final.name}.partial"
    if grid.rank == 0:
        shutil.rmtree(partial, ignore_errors=True)
        for name in parts:
            (partial / name).mkdir(parents=True)
        if write_more is not None:
            write_more(partial)
        atomic_write_json(partial / _RUN_STATE, {**run_state, "step": step})
    grid.barrier()
    for name, part in parts.items():
        with part.in_use():
            dist_checkpointing.save(_sharded_state(part, loading=False), str(partial / name))
    grid.barrier()
    if grid.rank == 0:
        shutil.rmtree(final, ignore_errors=True)
        partial.rename(final)
        _drop_others(folder, step, keep)
    grid.barrier()
    return final


def _drop_others(folder: Path, step: int, keep: int) -> None:
    """Delete old checkpoints, and those of later steps: a run that was taken up from an earlier
    step has another future, and ``--load`` would find theirs."""
    found = complete_checkpoints(folder)
    earlier = [path for path in found if _step_of(path) <= step]
    later = found[len(earlier) :]
    for path in later + (earlier[:-keep] if keep > 0 else []):
        shutil.rmtree(path)


def complete_checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints in a checkpoint folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [p for p in folder.iterdir() if _STEP.fullmatch(p.name) and (p / _RUN_STATE).is_file()]
    return sorted(found, key=_step_of)


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step_"))


def find_checkpoint(load: str | Path) -> Path:
    """The checkpoint that ``--load`` means: a step folder, or the newest of a run folder.

    Raises:
        FileNotFoundError: if there is none; the message says where it looked.
    """
    path = Path(load)
    if (path / _RUN_STATE).is_file():
        return path
    for folder in (path / "checkpoints", path):
        found = complete_checkpoints(folder)
        if found:
            return found[-1]
    raise FileNotFoundError(
        f"--load {load}: no complete checkpoint there (looked for step_*/{_RUN_STATE} in it and in "
        "its folder checkpoints/); give the folder of a run that has saved one"
    )


def read_run_state(checkpoint: Path) -> dict[str, Any]:
    """What ``save_checkpoint`` got as ``run_state``, with ``step``; ConfigError if damaged."""
    file = checkpoint / _RUN_STATE
    try:
        state: dict[str, Any] = json.loads(file.read_text())
    except ValueError as error:
        raise ConfigError(
            f"--load: {file} is damaged ({error}); give an earlier checkpoint"
        ) from None
    return state


@cpu.on_megatron_device
def load_checkpoint(checkpoint: Path, parts: Mapping[str, Trainable]) -> None:
    """Restore ``parts`` in place, from a checkpoint of any layout; collective over all ranks."""
    for name, part in parts.items():
        if not (checkpoint / name).is_dir():
            raise FileNotFoundError(
                f"checkpoint {checkpoint} has no {name!r}: another algorithm wrote it"
            )
        with part.in_use():
            _load(part, checkpoint / name)


def _load(part: Trainable, folder: Path) -> None:
    state = dist_checkpointing.load(_sharded_state(part, loading=True), str(folder))
    part.network.load_state_dict(state["model"])
    saved = state["optimizer"].get("optimizer", {})
    for group in saved.get("param_groups", []):
        # megatron-core 0.19 pairs saved groups with present ones by their rates, among others.
        group["max_lr"], group["min_lr"] = part.scheduler.max_lr, part.scheduler.min_lr
    part.optimizer.load_state_dict(state["optimizer"])
    part.resume_at(state["steps"])


def _give_optimizer_state(part: Trainable) -> None:
    """torch's AdamW has no state before its first step, and Megatron insists on finding some.

    That is so when loading, and when an actor is saved whose critic is still warming up.
    """
    for inner in inner_optimizers(part.optimizer):
        if not isinstance(inner, torch.optim.AdamW):
            continue
        for group in inner.param_groups:
            for param in group["params"]:
                if not inner.state[param]:
                    inner.state[param] = {
                        "step": torch.zeros(()),
                        "exp_avg": torch.zeros_like(param),
                        "exp_avg_sq": torch.zeros_like(param),
                    }
