# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which rank does what: process grid, layers, heads, vocabulary and batches of a run.

Resolved from the settings and two config.json before any process group or model exists, so that an
impossible layout costs a second and not a cluster start. Ranks are numbered as Megatron does by
default ("tp-cp-ep-dp-pp"): tensor parallel fastest, then data parallel, then pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from megacurl.config.batches import actor_updates, critic_updates, responses_per_rollout
from megacurl.config.decoder_size import DecoderSize, Role
from megacurl.config.errors import ConfigError, raise_problems
from megacurl.config.schema import Config, ParallelConfig
from megacurl.config.validate import batch_problems

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class RankCoordinates:
    """Position of a global rank in the three kinds of groups."""

    rank: int
    tp_rank: int
    dp_rank: int
    pp_rank: int


@dataclass(frozen=True)
class ModelPlacement:
    """How one model is cut; all ``*_per_rank`` sizes are exact, never rounded."""

    role: Role
    shape: DecoderSize
    tp: int
    pp: int
    padded_vocab_size: int
    chunks: int = 1

    @property
    def layers_per_stage(self) -> int:
        """Decoder layers of every pipeline stage, all its chunks together."""
        return self.shape.num_layers // self.pp

    @property
    def heads_per_rank(self) -> int:
        """Attention heads of a tensor parallel rank."""
        return self.shape.num_attention_heads // self.tp

    @property
    def query_groups_per_rank(self) -> int:
        """Key/value heads of a tensor parallel rank."""
        return self.shape.num_query_groups // self.tp

    @property
    def ffn_per_rank(self) -> int:
        """MLP width of a tensor parallel rank."""
        return self.shape.ffn_hidden_size // self.tp

    @property
    def vocab_per_rank(self) -> int:
        """Vocabulary rows of a tensor parallel rank, padding included."""
        return self.padded_vocab_size // self.tp

    def stage_layers(self, stage: int) -> list[range]:
        """Global indices of the layers of each chunk of pipeline stage ``stage``."""
        return stage_layers(self.shape.num_layers, self.pp, self.chunks, stage)

    def stage_parameters(self, stage: int) -> int:
        """Parameters on each rank of pipeline stage ``stage``."""
        return self.shape.stage_parameters(
            self.role,
            self.layers_per_stage,
            tp=self.tp,
            first=stage == 0,
            last=stage == self.pp - 1,
            vocab_size=self.padded_vocab_size,
        )


@dataclass(frozen=True)
class UpdatePlan:
    """How one model's updates consume a rollout: ``updates`` optimizer steps an epoch."""

    sequences_per_rollout: int
    updates: int
    epochs: int
    dp: int

    @property
    def global_batch_size(self) -> int:
        """Sequences of one optimizer step, of the largest where they do not divide evenly."""
        return math.ceil(self.sequences_per_rollout / self.updates)

    @property
    def steps_per_rollout(self) -> int:
        """Optimizer steps that one rollout gives, all epochs."""
        return self.epochs * self.updates

    @property
    def sequences_per_dp_rank(self) -> int:
        """Sequences of one optimizer step that a data parallel rank processes, at most."""
        return math.ceil(self.global_batch_size / self.dp)


@dataclass(frozen=True)
class Layout:
    """The whole run's layout. ``world_size = tp * dp * pp``. A run without a critic has none."""

    world_size: int
    tp: int
    pp: int
    dp: int
    actor: ModelPlacement
    critic: ModelPlacement | None
    actor_updates: UpdatePlan
    critic_updates: UpdatePlan | None

    @property
    def sequences_per_rollout(self) -> int:
        """Responses of one step over all data parallel ranks."""
        return self.actor_updates.sequences_per_rollout

    def rank_at(self, tp_rank: int, dp_rank: int, pp_rank: int) -> int:
        """Global rank at these coordinates."""
        return global_rank(tp_rank, dp_rank, pp_rank, tp=self.tp, dp=self.dp)

    def coordinates(self, rank: int) -> RankCoordinates:
        """Coordinates of a global rank. Raises ValueError outside ``0 .. world_size - 1``."""
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank is {rank}, must be 0 to {self.world_size - 1}")
        rest, tp_rank = divmod(rank, self.tp)
        pp_rank, dp_rank = divmod(rest, self.dp)
        return RankCoordinates(rank, tp_rank, dp_rank, pp_rank)

    @property
    def tp_groups(self) -> Groups:
        """Ranks that share every matrix, a group per (pipeline stage, data parallel rank)."""
        return tuple(
            tuple(self.rank_at(tp, dp, pp) for tp in range(self.tp))
            for pp in range(self.pp)
            for dp in range(self.dp)
        )

    @property
    def dp_groups(self) -> Groups:
        """Ranks that hold the same weights, a group per (pipeline stage, tensor parallel rank)."""
        return tuple(
            tuple(self.rank_at(tp, dp, pp) for dp in range(self.dp))
            for pp in range(self.pp)
            for tp in range(self.tp)
        )

    @property
    def pp_groups(self) -> Groups:
        """Ranks that form a pipeline, first stage first, a group per (data, tensor) rank."""
        return tuple(
            tuple(self.rank_at(tp, dp, pp) for pp in range(self.pp))
            for dp in range(self.dp)
            for tp in range(self.tp)
        )


def resolve_layout(
    config: Config,
    world_size: int,
    hf_config: Mapping[str, Any],
    critic_hf_config: Mapping[str, Any] | None = None,
) -> Layout:
    """Lay the run out over ``world_size`` ranks, or say everything that does not divide.

    ``hf_config`` is the policy's parsed config.json; ``critic_hf_config`` the critic's when it
    starts from another model. Raises ConfigError naming every pair of numbers that does not fit and
    the values that would.
    """
    tp = config.parallel.tensor_model_parallel_size
    pp = config.parallel.pipeline_model_parallel_size
    if min(world_size, tp, pp) < 1:
        raise ConfigError(
            f"world size {world_size}, --tensor-model-parallel-size {tp} and "
            f"--pipeline-model-parallel-size {pp} must all be at least 1"
        )
    shapes = _shapes(config, hf_config, critic_hf_config)
    problems = [*_grid_problems(world_size, tp, pp), *batch_problems(config)]
    problems += _shape_problems(shapes["actor"], config.parallel, "the model")
    if critic_hf_config is not None and "critic" in shapes:
        problems += _shape_problems(shapes["critic"], config.parallel, "the critic's model")
    dp = max(world_size // (tp * pp), 1)
    updates = _updates(config, dp)
    if world_size % (tp * pp) == 0:
        problems += _data_parallel_problems(config, updates, dp)
    raise_problems(problems)
    unit = config.model.make_vocab_size_divisible_by * tp
    placements = {
        role: ModelPlacement(
            role,
            shape,
            tp,
            pp,
            math.ceil(shape.vocab_size / unit) * unit,
            virtual_stages(shape.num_layers, config.parallel),
        )
        for role, shape in shapes.items()
    }
    return Layout(
        world_size=world_size,
        tp=tp,
        pp=pp,
        dp=dp,
        actor=placements["actor"],
        critic=placements.get("critic"),
        actor_updates=updates["actor"],
        critic_updates=updates.get("critic"),
    )


def stage_layers(num_layers: int, pp: int, chunks: int, stage: int) -> list[range]:
    """Global indices of the layers of each of the ``chunks`` of a pipeline stage."""
    layers = num_layers // pp // chunks
    starts = [(chunk * pp + stage) * layers for chunk in range(chunks)]
    return [range(start, start + layers) for start in starts]


def global_rank(tp_rank: int, dp_rank: int, pp_rank: int, *, tp: int, dp: int) -> int:
    """Rank at these coordinates of a grid with ``tp`` tensor and ``dp`` data parallel ranks."""
    return tp_rank + tp * (dp_rank + dp * pp_rank)


def virtual_stages(num_layers: int, parallel: ParallelConfig) -> int:
    """Chunks of layers on a rank: more than one with an interleaved pipeline."""
    layers = parallel.num_layers_per_virtual_pipeline_stage
    if layers is None:
        return 1
    return num_layers // parallel.pipeline_model_parallel_size // layers


def _shapes(
    config: Config, hf_config: Mapping[str, Any], critic_hf_config: Mapping[str, Any] | None
) -> dict[Role, DecoderSize]:
    actor = DecoderSize.from_hf(hf_config)
    if not config.algorithm.use_critic:
        return {"actor": actor}
    if critic_hf_config is None:
        return {"actor": actor, "critic": actor}
    critic = DecoderSize.from_hf(critic_hf_config, "the critic's config.json")
    return {"actor": actor, "critic": critic}


def placement_problems(world_size: int, shape: DecoderSize, parallel: ParallelConfig) -> list[str]:
    """Which of the ranks and the model's sizes the tensor and pipeline sizes do not divide."""
    tp, pp = parallel.tensor_model_parallel_size, parallel.pipeline_model_parallel_size
    return [*_grid_problems(world_size, tp, pp), *_shape_problems(shape, parallel, "the model")]


def _grid_problems(world_size: int, tp: int, pp: int) -> Iterator[str]:
    if world_size % (tp * pp):
        yield (
            f"world size {world_size} is no multiple of --tensor-model-parallel-size {tp} x "
            f"--pipeline-model-parallel-size {pp} = {tp * pp}; start a multiple of {tp * pp} ranks "
            "or change the two sizes"
        )


def _shape_problems(shape: DecoderSize, parallel: ParallelConfig, model: str) -> list[str]:
    tp, pp = parallel.tensor_model_parallel_size, parallel.pipeline_model_parallel_size
    problems = []
    tp_sizes = {
        "attention heads": shape.num_attention_heads,
        "key/value heads (they are not replicated)": shape.num_query_groups,
        "intermediate_size": shape.ffn_hidden_size,
    }
    allowed_tp = _divisors(math.gcd(*tp_sizes.values()))
    for what, size in tp_sizes.items():
        if size % tp:
            problems.append(
                f"--tensor-model-parallel-size {tp} does not divide {model}'s {size} {what}; "
                f"use one of {allowed_tp}"
            )
    if shape.num_layers % pp:
        problems.append(
            f"--pipeline-model-parallel-size {pp} does not divide {model}'s {shape.num_layers} "
            f"layers; use one of {_divisors(shape.num_layers)}"
        )
    chunk = parallel.num_layers_per_virtual_pipeline_stage
    stage = shape.num_layers // pp
    if chunk is not None and shape.num_layers % pp == 0 and stage % chunk:
        problems.append(
            f"--num-layers-per-virtual-pipeline-stage {chunk} does not divide the {stage} layers "
            f"that {model} has on a pipeline stage; use one of {_divisors(stage)}"
        )
    return problems


def _updates(config: Config, dp: int) -> dict[Role, UpdatePlan]:
    training = config.training
    sequences = responses_per_rollout(training)
    plans: dict[Role, UpdatePlan] = {
        "actor": UpdatePlan(sequences, actor_updates(training), training.ppo_epochs, dp)
    }
    if config.algorithm.use_critic:
        updates = critic_updates(training)
        plans["critic"] = UpdatePlan(sequences, updates, training.critic_epochs, dp)
    return plans


def _data_parallel_problems(
    config: Config, updates: Mapping[Role, UpdatePlan], dp: int
) -> Iterator[str]:
    training = config.training
    sizes: dict[Role, int | None] = {
        "actor": training.global_batch_size,
        "critic": training.critic_global_batch_size,
    }
    flags = {"actor": "--global-batch-size", "critic": "--critic-global-batch-size"}
    for role, plan in updates.items():
        given, batch, source = sizes[role] is not None, plan.global_batch_size, ""
        if not given:
            # Steps of nearly equal size need no multiple of anything; a whole rollout is one.
            if role == "critic" or plan.updates > 1:
                continue
            source = " (--rollout-batch-size x --n-samples-per-prompt)"
        if batch % dp:
            yield (
                f"{flags[role]} {batch}{source} is no multiple of the data parallel size {dp} = "
                f"world size / (tensor x pipeline); use a multiple of {dp}"
            )


def _divisors(number: int) -> str:
    return ", ".join(str(size) for size in range(1, number + 1) if number % size == 0)
