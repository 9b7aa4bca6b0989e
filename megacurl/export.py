# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl export``: the policy of a run's checkpoint as a Hugging Face folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from megatron.core import dist_checkpointing

from megacurl.config.load import resolve_defaults
from megacurl.config.schema import ParallelConfig
from megacurl.megatron import cpu, groups
from megacurl.megatron.checkpoint import find_checkpoint
from megacurl.models.builder import build_model
from megacurl.sync.export import export_hf


def main(load: str, output: str) -> None:
    """Export the checkpoint that ``load`` means (a run folder's newest, or a step's) to ``output``.

    One process holds the whole policy, whatever layout trained it. Settings come from the run
    folder's config.yaml.

    Raises:
        FileNotFoundError: no checkpoint, or no config.yaml beside it.
        FileExistsError: ``output`` holds something.
    """
    checkpoint = find_checkpoint(load)
    settings = checkpoint.parent.parent / "config.yaml"
    if not settings.is_file():
        raise FileNotFoundError(
            f"{settings} does not exist; export reads the run's settings there, so keep the "
            "checkpoint inside its run folder"
        )
    target = Path(output)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"--output {output} already holds something; choose another folder")
    config = resolve_defaults(config_file=str(settings))
    config = dataclasses.replace(config, parallel=ParallelConfig())
    grid = groups.initialize(config.parallel, config.training.seed)
    try:
        network = build_model("actor", config.model.hf_checkpoint, config.model, config.parallel)
        with cpu.cuda_is_cpu():
            state = dist_checkpointing.load(
                {"model": network.sharded_state_dict()}, str(checkpoint / "actor")
            )
        network.load_state_dict(state["model"])
        export_hf(network, config.model.hf_checkpoint, target, grid)
    finally:
        groups.shut_down()
    print(f"{checkpoint} -> {target}")
