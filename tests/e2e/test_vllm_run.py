# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A run with vLLM is the run with the embedded engine: same responses, same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from megacurl.config.schema import Config, ParallelConfig
from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.e2e.test_resume import config_of, questions
from tests.rollout.conftest import NEEDS_VLLM
from tests.tiny import make_model
from tests.world import World

pytestmark = NEEDS_VLLM


def start_again(config: Config) -> list[str]:
    """Start a run in a folder that holds one; the servers that are alive when it was refused."""
    from megacurl.run import Run

    with pytest.raises(FileExistsError):
        Run(config, jobs.enter(config))
    children = psutil.Process().children(recursive=True)
    return [name for child in children if "vllm" in (name := " ".join(child.cmdline()))]


def test_servers_learn_every_version(world: Callable[[int], World], tmp_path: Path) -> None:
    """Two launched servers, two ranks that share them: log-probs fit after every update."""
    model = make_model(tmp_path / "model", "qwen2-tied", head_dim=32)
    config = config_of(
        model,
        questions(tmp_path),
        tmp_path / "run",
        train_iters=3,
        critic_warmup_iters=0,
        tensor_model_parallel_size=2,
        export_hf=False,
        rollout_engine="vllm-server",
        rollout_launch=2,
        rollout_max_batch_size=16,
        rollout_kv_cache_mb=16,
        tensorboard=False,
    )
    world(2).run(jobs.run_training, config)
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert [row["sync/version"] for row in rows[1:]] == [1, 2, 3]
    assert all(row["sync/logprob_gap"] < 1e-5 for row in rows[1:])
    assert all(row["actor/grad_norm"] > 0 for row in rows[1:])
    assert world(1).run(start_again, replace(config, parallel=ParallelConfig())) == [[]]
    logs = sorted((tmp_path / "run" / "servers").iterdir())
    assert [log.name for log in logs] == ["server_0.log", "server_1.log"]


def test_two_steps_on_two_ranks(world: Callable[[int], World], tmp_path: Path) -> None:
    model = make_model(tmp_path / "model", "qwen2-tied", head_dim=32)
    rows = {}
    for engine in ("transformers", "vllm"):
        config = config_of(
            model,
            questions(tmp_path),
            tmp_path / engine,
            train_iters=2,
            critic_warmup_iters=0,
            export_hf=False,
            rollout_engine=engine,
            rollout_engine_sleep=engine == "vllm",  # its weights are sent again after each sleep
            rollout_max_batch_size=16,
            tensorboard=False,
        )
        world(2).run(jobs.run_training, config)
        rows[engine] = read_rows(tmp_path / engine / "metrics.jsonl")
    for ours, theirs in zip(rows["vllm"][1:], rows["transformers"][1:], strict=True):
        assert ours["sync/logprob_gap"] < 1e-3
        assert ours["sync/version"] == theirs["sync/version"]
        for name in ("accuracy", "length_mean", "reward_mean"):
            assert ours[f"rollout/{name}"] == theirs[f"rollout/{name}"]
        for name in ("actor/grad_norm", "critic/loss", "actor/entropy"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3)
