# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The printed layout and its memory arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from megacurl.config.fields import unflatten
from megacurl.config.layout import resolve_layout
from megacurl.config.layout_format import format_layout, format_ranks, format_table
from megacurl.config.memory import StateBytes, peak_bytes, stage_bytes, trained_model_bytes
from megacurl.config.schema import Config


def _sized(tp: int, pp: int, **fields: object) -> Config:
    sizes: dict[str, object] = {
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp,
    }
    return unflatten({**sizes, **fields})


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "[3]"),
        ([0, 32], "[0 32]"),
        (range(8), "[0-7]"),
        ([0, 4, 8], "[0 4 8]"),
        (range(1, 33, 4), "[1 5 .. 29]"),
    ],
)
def test_format_ranks(ranks: Any, text: str) -> None:
    assert format_ranks(list(ranks)) == text


def test_format_table_aligns() -> None:
    assert format_table(("name", "n"), [("a", "10"), ("longer", "1")]) == [
        "name     n",
        "a       10",
        "longer   1",
    ]


@pytest.mark.parametrize(
    ("bf16", "sharded", "weights", "optimizer"),
    [
        (True, True, 2, 12 / 4),
        (True, False, 2, 12),
        (False, True, 4, 8 / 4),
        (False, False, 4, 8),
    ],
)
def test_bytes_of_a_parameter(bf16: bool, sharded: bool, weights: int, optimizer: float) -> None:
    config = unflatten({"bf16": bf16, "use_distributed_optimizer": sharded})
    size = trained_model_bytes(100, config, dp=4)
    assert (size.weights, size.gradients, size.optimizer) == (
        100 * weights,
        400,
        100 * optimizer,
    )
    assert size.total == 100 * (weights + 4 + optimizer)


@pytest.mark.parametrize(
    ("offload", "device", "host"),
    [("none", 2 * 18 + 2, 0), ("optimizer", 2 * 6 + 2 + 12, 24), ("all", 18, 2 * 14 + 2)],
)
def test_most_memory_at_a_time(offload: Any, device: int, host: int) -> None:
    """Actor and critic with 2 + 4 + 12 bytes, a reference with 2."""
    trained = trained_model_bytes(1, unflatten({"bf16": True}), dp=1)
    peak = peak_bytes([trained, trained, StateBytes(2, 0, 0)], offload)
    assert (peak.device, peak.host) == (device, host)


def test_offload_is_part_of_the_layout(qwen_7b: dict[str, Any]) -> None:
    config = _sized(2, 2, offload="all", num_layers_per_virtual_pipeline_stage=7)
    text = format_layout(resolve_layout(config, 4, qwen_7b), config)
    assert "at a time with --offload all, and" in text
    assert "0-6 14-20" in text
    assert "7-13 21-27" in text


def test_a_reference_model_is_counted_only_with_kl(qwen_7b: dict[str, Any]) -> None:
    for coefficient, models in (
        (0.0, ["actor", "critic"]),
        (0.1, ["actor", "critic", "reference"]),
    ):
        config = _sized(1, 2, kl_coef=coefficient)
        sizes = stage_bytes(resolve_layout(config, 2, qwen_7b), config, 0)
        assert list(sizes) == models
    assert sizes["reference"].total == sizes["actor"].weights > 0


def test_64_ranks_stay_readable(qwen_7b: dict[str, Any]) -> None:
    config = _sized(4, 2, bf16=True)
    text = format_layout(resolve_layout(config, 64, qwen_7b), config)
    lines = text.splitlines()
    assert lines[:4] == [
        "Layout: 64 ranks = tensor 4 x data 8 x pipeline 2",
        "  tensor groups    16 of 4  [0-3] [4-7] ... [60-63]",
        "  data groups       8 of 8  [0 4 .. 28] [1 5 .. 29] ... [35 39 .. 63]",
        "  pipeline groups  32 of 2  [0 32] [1 33] ... [31 63]",
    ]
    assert len(lines) < 40
    assert max(map(len, lines)) <= 110
    cells = [line.split() for line in lines]
    assert ["key/value", "heads", "4", "1"] in cells
    # Half the layers and the embedding of 7,615,616,512 parameters, over four ranks.
    split = 14 * (2 * 3584 * 3584 + 3584 + 2 * (512 * 3584 + 512) + 3 * 3584 * 18944)
    replicated = 14 * 2 * 3584
    stage_0 = (split + 152064 * 3584) // 4 + replicated
    critic_1 = split // 4 + replicated + 2 * 3584
    assert ["0", "[0-31]", "0-13", "0-13", "embedding", f"{stage_0:,}", f"{stage_0:,}"] in cells
    actor_1 = f"{stage_0 + 3584:,}"
    assert [
        "1",
        "[32-63]",
        "14-27",
        "14-27",
        "norm",
        "and",
        "head",
        actor_1,
        f"{critic_1:,}",
    ] in cells
    assert ["actor", "1", "4096", "512", "1"] in cells
    assert "479 actor and 500 critic optimizer steps" in text


def test_few_ranks_are_listed_one_by_one(qwen_7b: dict[str, Any]) -> None:
    config = _sized(2, 2)
    cells = [
        line.split()
        for line in format_layout(resolve_layout(config, 8, qwen_7b), config).splitlines()
    ]
    assert ["rank", "tensor", "data", "pipeline"] in cells
    assert ["6", "0", "1", "1"] in cells


def test_equal_stages_share_a_line(qwen_7b: dict[str, Any]) -> None:
    config = _sized(1, 28)
    text = format_layout(resolve_layout(config, 28, qwen_7b), config)
    memory = [line.split()[0] for line in text.split("Memory")[1].splitlines()[2:8]]
    assert memory == ["0", "0", "1-26", "1-26", "27", "27"]


def test_two_different_models_are_both_shown(qwen_7b: dict[str, Any]) -> None:
    config = _sized(1, 1)
    critic = {**qwen_7b, "num_hidden_layers": 2}
    text = format_layout(resolve_layout(config, 1, qwen_7b, critic), config)
    assert "\nActor: qwen2, 7,615,616,512 parameters" in text
    assert "\nCritic: qwen2, " in text


def test_without_a_critic_none_is_shown(qwen_7b: dict[str, Any]) -> None:
    config = _sized(2, 2, use_critic=False, updates_per_rollout=4)
    layout = resolve_layout(config, 4, qwen_7b)
    assert layout.critic is layout.critic_updates is None
    assert list(stage_bytes(layout, config, 0)) == ["actor"]
    text = format_layout(layout, config)
    assert "Model (actor, no critic): qwen2" in text
    assert text.count("critic") == 1
    assert "500 rollouts: 2000 actor optimizer steps" in text
