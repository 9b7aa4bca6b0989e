# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What every process of step.py does: steps of MegaCURL and of plain PPO, turn by turn.

MegaCURL takes a real step of its training loop; the responses that it sampled are then the batch of
plain PPO, which samples as many and as long ones by its own means. Both start from one model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from transformers.utils.logging import disable_progress_bar

from megacurl.collection import Rollout
from megacurl.config.schema import Config
from megacurl.data.load import load_prompts
from megacurl.megatron import groups
from megacurl.megatron.groups import Grid
from megacurl.observe.timers import Timers
from megacurl.run import Run
from megacurl.train import iteration
from megacurl.trajectory import Trajectory
from plain_ppo import PlainPPO, PPOSettings, Response
from step_plan import NUMBERS, PHASES, Round, StepBench, Turn, save_rounds


class _OpenRun(Run):
    """A run that shows the responses of its last step."""

    trajectories: list[Trajectory]

    def rollout(self) -> Rollout:
        rollout = super().rollout()
        self.trajectories = rollout.trajectories
        return rollout


def measure(bench: StepBench, grid: Grid) -> list[Round]:
    """The rounds after a first one that is thrown away; collective.

    Of the ranks' times those of the rank that took longest for the step.
    """
    torch.set_num_threads(bench.threads)
    config = bench.config
    run = _OpenRun(config, grid)
    try:
        return _measure(bench, config, run)
    finally:
        run.close()


def _measure(bench: StepBench, config: Config, run: _OpenRun) -> list[Round]:
    synchronize = torch.cuda.synchronize if run.grid.device.type == "cuda" else None
    run.timers = Timers(synchronize, bench.read_clock)
    optimizer = config.optimizer
    settings = PPOSettings(optimizer.lr, optimizer.critic_lr, epochs=bench.epochs)
    plain = PlainPPO(bench.base, settings, run.grid.device, bench.read_clock)
    answers = {p.id: p.answer for p in load_prompts(config.data.prompt_data)}
    run.sync(run.version)
    rounds = []
    for _ in range(bench.rounds + 1):
        first = _slowest(_megacurl_turn(run, bench.read_clock), run.grid)
        batch = run.trajectories
        second = _slowest(_plain_turn(plain, batch, answers), run.grid)
        tokens = sum(t.num_tokens for t in batch)
        longest = max(len(t.response_ids) for t in batch)
        rounds.append(Round(tokens, longest, first, second))
    return rounds[1:]


def _megacurl_turn(run: Run, clock: Callable[[], float]) -> Turn:
    run.grid.barrier()
    start = clock()
    metrics = iteration(run)
    whole = clock() - start
    seconds = {phase: metrics[f"time/{phase}"] for phase in PHASES}
    return Turn(seconds, whole, {ours: metrics[name] for ours, name in NUMBERS.items()})


def _plain_turn(plain: PlainPPO, batch: list[Trajectory], answers: dict[str, str]) -> Turn:
    responses = [Response(t.prompt_ids, t.response_ids, t.reward) for t in batch]
    wanted = [answers[t.prompt_id] for t in batch]
    plain.seconds = {"sync": 0.0}  # it samples with the weights that it trains
    start = plain.clock()
    numbers = plain.step(responses, wanted)
    return Turn(plain.seconds, plain.clock() - start, numbers)


def _slowest(turn: Turn, grid: Grid) -> Turn:
    turns: list[Turn] = grid.gather_objects(turn)
    return max(turns, key=lambda t: t.step)


def main() -> None:
    """torchrun step_rounds.py BENCH RESULT: a StepBench as JSON, and the file for the rounds."""
    disable_progress_bar()
    bench = StepBench(**json.loads(sys.argv[1]))
    grid = groups.initialize(bench.config.parallel, bench.config.training.seed)
    rounds = measure(bench, grid)
    if grid.rank == 0:
        save_rounds(rounds, Path(sys.argv[2]))
    groups.shut_down()


if __name__ == "__main__":
    main()
