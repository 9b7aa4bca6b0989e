# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""After an update and a sync the engine is the trainer's policy, and proves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import jobs
from tests.rollout.conftest import NEEDS_VLLM
from tests.tiny import make_model, make_trajectories
from tests.world import World


@pytest.mark.parametrize("kind", ["qwen2-tied", "llama-untied"])
@pytest.mark.parametrize(("tp", "pp", "bf16"), [(1, 1, False), (2, 2, False), (2, 1, True)])
def test_engine_equals_one_started_from_the_export(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
    tp: int,
    pp: int,
    bf16: bool,
) -> None:
    config = jobs.settings(
        tiny_model(kind),
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        lr=0.05,
        bf16=bf16,
    )
    ranks = world(tp * pp).run(jobs.sync_after_update, config, make_trajectories(), tmp_path / "hf")
    check(ranks)


@NEEDS_VLLM
@pytest.mark.parametrize("kind", ["qwen2-tied", "llama-untied"])
@pytest.mark.parametrize(("tp", "dp", "bf16"), [(1, 2, False), (2, 1, True)])
def test_vllm_equals_one_started_from_the_export(
    world: Callable[[int], World], tmp_path: Path, kind: str, tp: int, dp: int, bf16: bool
) -> None:
    base = make_model(tmp_path / "base", kind, head_dim=32)
    config = jobs.settings(base, tensor_model_parallel_size=tp, lr=0.05, bf16=bf16)
    ranks = world(tp * dp).run(
        jobs.sync_after_update, config, make_trajectories(), tmp_path / "hf", "vllm"
    )
    check(ranks)


def check(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        before, after = rank["digests"]
        assert before != after, "the update changed nothing"
        assert rank["version"] == 1
        assert after == rank["fresh_digest"] == ranks[0]["digests"][1]
        assert rank["ours"] == rank["fresh"]
