# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""MegaCURL's side of peers.py: real steps of its training loop, turn by turn."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from megacurl.config.load import parse_args
from megacurl.config.schema import Config
from megacurl.megatron import groups
from megacurl.megatron.groups import Grid
from megacurl.run import Run
from megacurl.sync.export import export_hf
from megacurl.train import iteration
from peers_plan import Assignment, PeerBench
from peers_turns import Player


def config_of(bench: PeerBench, seed: int, folder: str) -> Config:
    """MegaCURL's settings; those of the algorithm are its preset's."""
    flags = {
        "algorithm": "grpo",
        "hf-checkpoint": bench.base,
        "prompt-data": str(Path(bench.base) / "train.jsonl"),
        "verifier": bench.verifier,
        "rollout-batch-size": bench.prompts,
        "n-samples-per-prompt": bench.samples,
        "rollout-max-prompt-len": bench.max_prompt,
        "rollout-max-response-len": bench.max_response,
        "rollout-temperature": bench.temperature,
        "max-tokens-per-micro-batch": 8192,
        "lr": bench.lr,
        "weight-decay": bench.weight_decay,
        "adam-beta1": bench.adam_beta1,
        "adam-beta2": bench.adam_beta2,
        "adam-eps": bench.adam_eps,
        "clip-grad": bench.clip_grad,
        "seed": seed,
        "run-dir": folder,
        # The last step of a run saves a checkpoint, which is not what is timed.
        "train-iters": bench.steps + 1,
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    return parse_args([*words, *(("--require-value",) if bench.require_value else ())])


def train(assignment: Assignment, grid: Grid, player: Player) -> None:
    """All steps, whenever it is our turn; then the trained policy. Collective."""
    bench = assignment.bench
    torch.set_num_threads(bench.threads)
    run = Run(config_of(bench, assignment.seed, assignment.folder), grid)
    try:
        run.sync(run.version)
        for _ in range(bench.steps):
            player.begin()
            metrics = iteration(run)
            player.end(metrics["rollout/accuracy"], metrics["rollout/length_mean"])
        export_hf(run.actor.network, bench.base, Path(assignment.folder) / "hf", grid)
    finally:
        run.close()


def main() -> None:
    """torchrun peers_megacurl.py ASSIGNMENT."""
    disable_progress_bar()
    assignment = Assignment.of_json(sys.argv[1])
    config = config_of(assignment.bench, assignment.seed, assignment.folder)
    grid = groups.initialize(config.parallel, config.training.seed)
    player = Player(assignment.address, assignment.contender.name, assignment.bench.read_clock)
    train(assignment, grid, player)
    player.close()
    groups.shut_down()


if __name__ == "__main__":
    main()
