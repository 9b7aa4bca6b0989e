# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Layouts: rank grid equal to Megatron's, cuts that are exact, refusals that say why."""

from __future__ import annotations

import dataclasses
import itertools
from contextlib import nullcontext
from typing import Any

import pytest

from megacurl.config.errors import ConfigError
from megacurl.config.fields import unflatten
from megacurl.config.layout import Layout, resolve_layout
from megacurl.config.schema import Config

_SHAPE: dict[str, Any] = {
    "model_type": "qwen2",
    "num_hidden_layers": 12,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
}


def _config(tp: int = 1, pp: int = 1, **fields: object) -> Config:
    sizes: dict[str, object] = {
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp,
    }
    return unflatten({**sizes, **fields})


def _layout(tp: int, pp: int, dp: int, **fields: object) -> Layout:
    return resolve_layout(_config(tp, pp, **fields), tp * pp * dp, _SHAPE)


_GRIDS = [(1, 1, 1), (1, 1, 4), (2, 1, 2), (1, 2, 2), (2, 2, 1), (4, 2, 8), (2, 3, 4), (4, 4, 4)]


@pytest.mark.parametrize(("tp", "pp", "dp"), _GRIDS)
def test_groups_equal_those_of_megatron(tp: int, pp: int, dp: int) -> None:
    from megatron.core.parallel_state import RankGenerator

    generator = RankGenerator(tp=tp, ep=1, dp=dp, pp=pp, cp=1, order="tp-cp-ep-dp-pp")
    layout = _layout(tp, pp, dp)
    for ours, token in (
        (layout.tp_groups, "tp"),
        (layout.dp_groups, "dp"),
        (layout.pp_groups, "pp"),
    ):
        assert sorted(ours) == sorted(map(tuple, generator.get_ranks(token)))


@pytest.mark.parametrize(("tp", "pp", "dp"), _GRIDS)
def test_coordinates_and_groups_agree(tp: int, pp: int, dp: int) -> None:
    layout = _layout(tp, pp, dp)
    for rank in range(layout.world_size):
        at = layout.coordinates(rank)
        assert layout.rank_at(at.tp_rank, at.dp_rank, at.pp_rank) == at.rank == rank
    for groups, axis in (
        (layout.tp_groups, "tp_rank"),
        (layout.dp_groups, "dp_rank"),
        (layout.pp_groups, "pp_rank"),
    ):
        assert sorted(rank for group in groups for rank in group) == list(range(layout.world_size))
        for group in groups:
            places = [getattr(layout.coordinates(rank), axis) for rank in group]
            assert places == list(range(len(group)))


def test_first_rank_and_last_rank() -> None:
    layout = _layout(4, 2, 8)
    last = layout.coordinates(63)
    assert (last.tp_rank, last.dp_rank, last.pp_rank) == (3, 7, 1)
    assert layout.coordinates(4).dp_rank == 1
    for rank in (-1, 64):
        with pytest.raises(ValueError, match=f"rank is {rank}, must be 0 to 63"):
            layout.coordinates(rank)


def test_cuts_of_the_model() -> None:
    layout = _layout(4, 3, 1)
    actor = layout.actor
    assert (actor.heads_per_rank, actor.query_groups_per_rank, actor.ffn_per_rank) == (2, 1, 24)
    assert actor.layers_per_stage == 4
    assert [[list(chunk) for chunk in actor.stage_layers(stage)] for stage in range(3)] == [
        [[0, 1, 2, 3]],
        [[4, 5, 6, 7]],
        [[8, 9, 10, 11]],
    ]
    chunked = dataclasses.replace(actor, chunks=2)
    assert [[list(chunk) for chunk in chunked.stage_layers(stage)] for stage in range(3)] == [
        [[0, 1], [6, 7]],
        [[2, 3], [8, 9]],
        [[4, 5], [10, 11]],
    ]
    assert (actor.padded_vocab_size, actor.vocab_per_rank) == (1024, 256)


@pytest.mark.parametrize(
    ("tp", "divisible_by", "padded"), [(1, 128, 1024), (4, 128, 1024), (4, 300, 1200), (1, 1, 1000)]
)
def test_vocabulary_padding_multiplies_tp_once(tp: int, divisible_by: int, padded: int) -> None:
    layout = _layout(tp, 1, 1, make_vocab_size_divisible_by=divisible_by)
    assert layout.actor.padded_vocab_size == layout.critic.padded_vocab_size == padded


def test_batch_arithmetic() -> None:
    fields: dict[str, object] = {
        "rollout_batch_size": 64,
        "n_samples_per_prompt": 8,
        "global_batch_size": 128,
        "critic_global_batch_size": 64,
        "ppo_epochs": 2,
    }
    layout = _layout(1, 1, 4, **fields)
    assert layout.sequences_per_rollout == 512
    assert layout.actor_updates.steps_per_rollout == 8
    assert layout.actor_updates.sequences_per_dp_rank == 32
    assert layout.critic_updates.steps_per_rollout == 8
    assert layout.critic_updates.sequences_per_dp_rank == 16


def test_batch_defaults() -> None:
    layout = _layout(1, 1, 4)
    assert layout.actor_updates.global_batch_size == 4096
    assert layout.actor_updates.steps_per_rollout == layout.critic_updates.steps_per_rollout == 1
    layout = _layout(1, 1, 4, global_batch_size=1024)
    assert layout.critic_updates.global_batch_size == 1024
    assert layout.critic_updates.steps_per_rollout == 4


def test_a_critic_from_another_model() -> None:
    other = {**_SHAPE, "num_hidden_layers": 6, "vocab_size": 5000}
    layout = resolve_layout(_config(2, 3), 6, _SHAPE, other)
    assert (layout.actor.layers_per_stage, layout.critic.layers_per_stage) == (4, 2)
    assert (layout.actor.padded_vocab_size, layout.critic.padded_vocab_size) == (1024, 5120)
    with pytest.raises(ConfigError) as caught:
        resolve_layout(_config(1, 4), 4, _SHAPE, other)
    assert caught.value.problems == (
        "--pipeline-model-parallel-size 4 does not divide the critic's model's 6 layers; use one "
        "of 1, 2, 3, 6",
    )


@pytest.mark.parametrize(
    ("tp", "pp", "world", "fields", "problems"),
    [
        (4, 2, 12, {}, ["world size 12 is no multiple of --tensor-model-parallel-size 4 x"]),
        (4, 2, 4, {}, ["world size 4 is no multiple of"]),
        (
            3,
            1,
            3,
            {},
            [
                "--tensor-model-parallel-size 3 does not divide the model's 8 attention heads; use",
                "--tensor-model-parallel-size 3 does not divide the model's 4 key/value heads (they"
                " are not replicated); use one of 1, 2, 4",
            ],
        ),
        (8, 1, 8, {}, ["--tensor-model-parallel-size 8 does not divide the model's 4 key/value"]),
        (
            1,
            2,
            2,
            {"num_layers_per_virtual_pipeline_stage": 4},
            ["--num-layers-per-virtual-pipeline-stage 4 does not divide the 6 layers that the"],
        ),
        (1, 5, 5, {}, ["--pipeline-model-parallel-size 5 does not divide the model's 12 layers;"]),
        (1, 1, 3, {}, ["--global-batch-size 4096 (--rollout-batch-size x --n-samples-per-prompt)"]),
        (1, 1, 8, {"global_batch_size": 4}, ["--global-batch-size 4 is no multiple of the data"]),
        (
            1,
            1,
            8,
            {"critic_global_batch_size": 4},
            ["--critic-global-batch-size 4 is no multiple of the data parallel size 8"],
        ),
        (1, 1, 1, {"global_batch_size": 5}, ["--global-batch-size 5 does not divide the 4096"]),
        (0, 1, 1, {}, ["world size 1, --tensor-model-parallel-size 0"]),
        (1, 1, 0, {}, ["world size 0, --tensor-model-parallel-size 1"]),
        (
            3,
            5,
            16,
            {"global_batch_size": 5},
            ["world size 16", "--global-batch-size 5", "--tensor", "--tensor", "--pipeline"],
        ),
    ],
)
def test_impossible_layouts_are_refused(
    tp: int, pp: int, world: int, fields: dict[str, object], problems: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_layout(_config(tp, pp, **fields), world, _SHAPE)
    assert len(caught.value.problems) == len(problems), caught.value.problems
    for problem, start in zip(caught.value.problems, problems, strict=True):
        assert problem.startswith(start)


def test_every_layout_that_divides_is_accepted() -> None:
    for tp, pp in itertools.product(range(1, 9), range(1, 13)):
        divides = 4 % tp == 0 and 12 % pp == 0
        with nullcontext() if divides else pytest.raises(ConfigError, match="does not divide"):
            assert resolve_layout(_config(tp, pp), tp * pp, _SHAPE).dp == 1
