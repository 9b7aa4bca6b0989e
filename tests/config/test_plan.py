# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The whole check: problems of values, files and layout in one error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.errors import ConfigError
from megacurl.config.plan import plan_run
from megacurl.config.schema import Config

MakeConfig = Callable[..., Config]


def _problems(config: Config, world_size: int) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        plan_run(config, world_size)
    return caught.value.problems


def test_a_usable_run_has_a_layout(make_config: MakeConfig) -> None:
    layout = plan_run(make_config(tensor_model_parallel_size=2), 8)
    assert (layout.tp, layout.pp, layout.dp) == (2, 1, 4)


def test_values_files_and_layout_are_reported_together(make_config: MakeConfig) -> None:
    config = make_config(
        tensor_model_parallel_size=3, global_batch_size=100, run_dir="", instruction="none"
    )
    starts = [problem.split()[0] for problem in _problems(config, 3)]
    assert starts == [
        "--global-batch-size",
        "--instruction",
        "--run-dir",
        "--tensor-model-parallel-size",
        "--tensor-model-parallel-size",
        "--tensor-model-parallel-size",
    ]
    assert len(set(_problems(config, 3))) == len(starts)


def test_out_of_range_values_hide_the_layout(make_config: MakeConfig) -> None:
    config = make_config(rollout_batch_size=0, make_vocab_size_divisible_by=0)
    assert [problem.split()[0] for problem in _problems(config, 1)] == [
        "--make-vocab-size-divisible-by",
        "--rollout-batch-size",
    ]


def test_a_broken_config_json_is_one_problem(make_config: MakeConfig) -> None:
    config = make_config()
    (Path(config.model.hf_checkpoint) / "config.json").write_text("{")
    (problem,) = _problems(config, 1)
    assert "not valid JSON" in problem


def test_a_missing_model_is_one_problem(make_config: MakeConfig) -> None:
    (problem,) = _problems(make_config(critic_hf_checkpoint="absent"), 1)
    assert problem.startswith("--critic-hf-checkpoint absent is no folder")


def test_the_critics_model_is_read(
    make_config: MakeConfig, tmp_path: Path, qwen_7b: dict[str, Any]
) -> None:
    critic = tmp_path / "critic"
    critic.mkdir()
    (critic / "model.safetensors").touch()
    (critic / "config.json").write_text(json.dumps({**qwen_7b, "num_hidden_layers": 4}))
    layout = plan_run(make_config(critic_hf_checkpoint=str(critic)), 1)
    assert (layout.actor.layers_per_stage, layout.critic.layers_per_stage) == (28, 4)


def test_sequences_longer_than_the_model_are_refused(make_config: MakeConfig) -> None:
    config = make_config(rollout_max_response_len=40000, max_tokens_per_micro_batch=50000)
    (problem,) = _problems(config, 1)
    assert "--rollout-max-response-len 40000 is 42048 tokens" in problem
    assert "32768 positions" in problem
