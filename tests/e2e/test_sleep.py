# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""An engine that sleeps while the trainer works: the same run, through warm-up and training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.schema import Config
from megacurl.observe.sinks.jsonl import read_rows
from megacurl.run import Run
from megacurl.train import train
from tests import jobs
from tests.e2e.test_resume import config_of, questions, without_times
from tests.world import World


def states_of_engine(config: Config) -> list[tuple[str, str]]:
    """Train; (what was done, the engine's state just before it)."""
    seen: list[tuple[str, str]] = []
    with pytest.MonkeyPatch.context() as patch:

        def watch(name: str) -> None:
            original = getattr(Run, name)

            def watched(run: Run, *args: Any, **kwargs: Any) -> Any:
                seen.append((name, run.engine.state))
                return original(run, *args, **kwargs)

            patch.setattr(Run, name, watched)

        for name in ("rollout", "hand_over", "evaluate_if_due"):
            watch(name)
        run = Run(config, jobs.enter(config))
        train(run)
        run.close()
    return seen


def test_the_same_run(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    data, model = questions(tmp_path), tiny_model("qwen2-tied")
    flags = {"train_iters": 3, "critic_warmup_iters": 1, "export_hf": False}
    awake = config_of(model, data, tmp_path / "awake", **flags)
    asleep = config_of(
        model, data, tmp_path / "asleep", **flags, rollout_engine_sleep=True, offload="all"
    )
    assert {state for _, state in world(1).run(states_of_engine, awake)[0]} == {"ready"}
    seen = world(1).run(states_of_engine, asleep)[0]
    assert {state for what, state in seen if what == "hand_over"} == {"released"}
    assert {state for what, state in seen if what != "hand_over"} == {"ready"}
    rows = [
        without_times(read_rows(tmp_path / run / "metrics.jsonl")) for run in ("awake", "asleep")
    ]
    assert rows[0] == rows[1]
