# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A server that one rank alone has lost is news to all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from megacurl.config.schema import Config
from tests.e2e.lossy_engine import SERVER
from tests.e2e.test_resume import config_of, questions
from tests.world import World

STEPS = 2


def train_and_count_updates(config: Config, steps: int) -> tuple[int, dict[str, str]]:
    """Weights that this rank has sent before and after so many steps, and what is still lost."""
    from megacurl.rollout.registry import engine_names, register_engine
    from megacurl.run import Run
    from megacurl.train import iteration
    from tests.jobs import enter

    if "lossy-server" not in engine_names():
        register_engine("lossy-server", "tests.e2e.lossy_engine")
    run = Run(config, enter(config))
    try:
        run.sync(run.version)
        for _ in range(steps):
            iteration(run)
        return run.engine.stats.updates, run.engine.lost
    finally:
        run.close()


def test_all_ranks_sync_when_one_has_lost_a_server(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """While the critic warms up no weights change, so the loss is the only reason for a sync."""
    config = config_of(
        tiny_model("qwen2-tied"),
        questions(tmp_path),
        tmp_path / "run",
        train_iters=STEPS + 1,
        critic_warmup_iters=STEPS,
        export_hf=False,
        rollout_engine="lossy-server",
        rollout_urls=(SERVER,),
        tensorboard=False,
    )
    leader, follower = world(2).run(train_and_count_updates, config, STEPS)
    assert leader == (1 + STEPS, {})
    assert follower == (0, {})
