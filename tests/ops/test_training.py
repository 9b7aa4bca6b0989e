# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Training steps of a tiny model on the same rollouts, with the operators and the references."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from megacurl import ops
from megacurl.config.schema import Config
from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.e2e.test_replay import NUMBERS, settings
from tests.e2e.test_resume import config_of, questions
from tests.world import World

pytestmark = pytest.mark.skipif(not ops.is_built(), reason="the operators are not built")


def train_with(mode: ops.Mode, config: Config) -> None:
    """Run in the world's processes."""
    with ops.using(mode):
        jobs.run_training(config)


def test_same_steps(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    data, model = questions(tmp_path), tiny_model("qwen2-tied")
    rollouts = str(tmp_path / "rollouts")
    flags = {**settings(), "train_iters": 2, "value_clip": 0.2, "dual_clip": 3.0}

    def train(mode: ops.Mode, **more: str) -> list[dict[str, float]]:
        config = config_of(model, data, tmp_path / mode, **flags, **more)
        world(1).run(train_with, mode, config)
        return read_rows(tmp_path / mode / "metrics.jsonl")[1:]

    expected = train("reference", save_rollouts=rollouts)
    found = train("auto", replay_rollouts=rollouts)
    assert len(found) == len(expected) == 2
    names = (*NUMBERS, "critic/explained_variance", "cvpo/w_s_mean", "cvpo/sigma_mean")
    for step, (before, after) in enumerate(zip(expected, found, strict=True)):
        for name in (*names, "actor/clip_fraction", "actor/approx_kl"):
            bound = 1e-5 if step == 0 else 1e-4
            assert after[name] == pytest.approx(before[name], rel=bound, abs=1e-6), (step, name)
