# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Recorded rollouts replayed in other layouts: three steps with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.e2e.test_resume import config_of, questions
from tests.world import World

TP2: dict[str, Any] = {"tensor_model_parallel_size": 2}
PP2: dict[str, Any] = {"pipeline_model_parallel_size": 2}
LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "the same": (1, {}),
    "tp2": (2, TP2),
    "tp2 sp": (2, {**TP2, "sequence_parallel": True}),
    "pp2": (2, PP2),
    "tp2 pp2": (4, {**TP2, **PP2}),
    "tp2 pp2 sp": (4, {**TP2, **PP2, "sequence_parallel": True}),
    "pp2 vpp2": (2, {**PP2, "num_layers_per_virtual_pipeline_stage": 1}),
    "dp2": (2, {}),
    "dp2 pp2": (4, PP2),
    "smaller micro-batches": (1, {"max_tokens_per_micro_batch": 80}),
    "smallest micro-batches": (1, {"max_tokens_per_micro_batch": 70, "log_prob_chunk_size": 3}),
    "one micro-batch": (1, {"max_tokens_per_micro_batch": 4096}),
    "recompute": (2, {**PP2, "recompute_granularity": "full"}),
    "offload optimizer": (1, {"offload": "optimizer"}),
    "offload all": (1, {"offload": "all"}),
    "offload all, pp2 vpp2": (
        2,
        {**PP2, "num_layers_per_virtual_pipeline_stage": 1, "offload": "all"},
    ),
    "offload all, dp2, plain adam": (2, {"offload": "all", "use_distributed_optimizer": False}),
    "recompute attention": (1, {"recompute_granularity": "selective"}),
}
NUMBERS = ("critic/loss", "critic/grad_norm", "actor/loss", "actor/grad_norm", "critic/mse")


@pytest.fixture(scope="module")
def recorded(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    config = config_of(
        tiny_model("qwen2-tied"),
        questions(folder),
        folder / "run",
        **settings(),
        save_rollouts=str(folder / "rollouts"),
    )
    world(1).run(jobs.run_training, config)
    return folder


def settings() -> dict[str, Any]:
    """Four critic and actor steps a rollout: enough for differences to grow."""
    return {
        "train_iters": 3,
        "critic_warmup_iters": 0,
        "global_batch_size": 4,
        "save_interval": None,
        "export_hf": False,
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_same_numbers(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    recorded: Path,
    tmp_path: Path,
    name: str,
) -> None:
    size, flags = LAYOUTS[name]
    config = config_of(
        tiny_model("qwen2-tied"),
        recorded / "questions.jsonl",
        tmp_path / "run",
        **{**settings(), **flags},
        replay_rollouts=str(recorded / "rollouts"),
    )
    world(size).run(jobs.run_training, config)
    expected = read_rows(recorded / "run" / "metrics.jsonl")[1:]
    found = read_rows(tmp_path / "run" / "metrics.jsonl")[1:]
    assert len(found) == len(expected) == 3
    for step, (before, after) in enumerate(zip(expected, found, strict=True)):
        bound = 1e-5 if step == 0 else 1e-4
        for number in NUMBERS:
            assert after[number] == pytest.approx(before[number], rel=bound, abs=1e-6), (
                step,
                number,
            )
        if name == "the same":
            assert all(after[number] == before[number] for number in NUMBERS)


def test_what_is_missing_or_does_not_fit_is_named(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], recorded: Path, tmp_path: Path
) -> None:
    flags = {**settings(), "replay_rollouts": str(recorded / "rollouts")}

    def run(name: str, **change: Any) -> None:
        config = config_of(
            tiny_model("qwen2-tied"),
            recorded / "questions.jsonl",
            tmp_path / name,
            **{**flags, **change},
        )
        world(1).run(jobs.run_training, config)

    with pytest.raises(AssertionError, match=r"rollout_000003\.parquet is missing \(2 of 5 are\)"):
        run("longer", train_iters=5)
    with pytest.raises(AssertionError, match=r"has 16 responses, but .* is 8"):
        run("fewer", rollout_batch_size=2)
