# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What every process of tiny_table.py does: train until so many responses are sampled, evaluate."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from megacurl.collection import Rollout
from megacurl.megatron import groups
from megacurl.observe.timers import Timers
from megacurl.run import Run
from megacurl.train import iteration
from tiny_plan import Record, Score, System, Training


class _CountingRun(Run):
    """A run that counts what it samples."""

    responses = 0
    tokens = 0

    def rollout(self) -> Rollout:
        rollout = super().rollout()
        self.responses += len(rollout.everything)
        self.tokens += sum(len(t.response_ids) for t in rollout.everything)
        return rollout


def train(training: Training) -> Record:
    """Train and evaluate in a world of one process."""
    torch.set_num_threads(1)
    config = training.config
    run = _CountingRun(config, groups.initialize(config.parallel, config.training.seed))
    # What the process computes, so that a busy machine makes no system look slow.
    run.timers = Timers(None, time.process_time)
    scores, seconds = [], 0.0
    try:
        run.sync(run.version)
        for budget in training.budgets:
            while run.responses < budget:
                seconds += iteration(run)["time/step"]
            scores.append(_score(run, seconds))
    finally:
        run.close()
        groups.shut_down()
    return Record(training.system.name, training.seed, scores)


def _score(run: _CountingRun, seconds: float) -> Score:
    (result,) = run.evaluator(run.generator, step=run.step, version=run.version)
    right: dict[str, int] = {}
    asked: dict[str, int] = {}
    for level, correct in zip(result.levels, result.num_correct, strict=True):
        name = level or "other"
        right[name] = right.get(name, 0) + correct
        asked[name] = asked.get(name, 0) + result.k
    return Score(run.step, run.responses, run.tokens, seconds, right, asked)


def main() -> None:
    """``tiny_training.py TRAINING RECORD``: a Training as JSON, the file to write."""
    fields = json.loads(sys.argv[1])
    system = fields.pop("system")
    flags, budgets = tuple(system.pop("flags")), tuple(fields.pop("budgets"))
    disable_progress_bar()
    training = Training(system=System(flags=flags, **system), budgets=budgets, **fields)
    train(training).save(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
