# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The settings of ``megacurl plan``, and what can be checked before torch is imported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import tyro

from megacurl.config.decoder_size import DecoderSize, read_hf_config
from megacurl.config.errors import about, raise_problems
from megacurl.config.layout import placement_problems
from megacurl.config.schema import ModelConfig, ParallelConfig, RolloutConfig

PLAN_HELP = (
    "Say how the trainer's weights get into rollout engines of another layout: what every\n"
    "rank sends and receives, next to the least that any plan can do. Every engine rank gets\n"
    "the slices that it needs straight from the trainer ranks that hold them; no rank\n"
    "gathers a tensor. Nothing is loaded or started. (megacurl train does not send this way\n"
    "yet: there rank 0 sends whole tensors, see docs/sync.md.)\n\n"
    "Examples:\n"
    "  megacurl plan --hf-checkpoint MODEL --rollout-tensor-parallel-size 2\n"
    "  megacurl plan --hf-checkpoint MODEL --bf16 --world-size 64 \\\n"
    "    --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 \\\n"
    "    --rollout-tensor-parallel-size 4 --rollout-engines 8"
)


@dataclass(frozen=True)
class PlanArguments:
    """A model, the trainer's layout (flags as in megacurl train) and that of the engines."""

    hf_checkpoint: Annotated[str, tyro.conf.arg(metavar="PATH")]
    """Hugging Face folder of the policy; its config.json is all that is read."""
    world_size: int | None = None
    """Trainer ranks; default: tensor x pipeline parallel."""
    tensor_model_parallel_size: int = ParallelConfig.tensor_model_parallel_size
    """Trainer ranks that share every layer's matrices."""
    pipeline_model_parallel_size: int = ParallelConfig.pipeline_model_parallel_size
    """Trainer ranks that share the stack of layers."""
    num_layers_per_virtual_pipeline_stage: int | None = None
    """Interleaved pipeline: a rank holds several chunks of this many layers."""
    make_vocab_size_divisible_by: int = ModelConfig.make_vocab_size_divisible_by
    """Vocabulary padding of the trainer."""
    bf16: bool = False
    """Weights travel in bfloat16; default is fp32."""
    rollout_tensor_parallel_size: int = 1
    """Ranks of an engine that share every layer's matrices."""
    rollout_engines: int = 1
    """Engines that receive the weights, each apart from the trainer's ranks."""
    sync_bucket_mb: int = RolloutConfig.sync_bucket_mb
    """Largest part of a bucket that an engine rank receives; a larger tensor travels alone."""

    @property
    def parallel(self) -> ParallelConfig:
        """The trainer's layout."""
        return ParallelConfig(
            tensor_model_parallel_size=self.tensor_model_parallel_size,
            pipeline_model_parallel_size=self.pipeline_model_parallel_size,
            num_layers_per_virtual_pipeline_stage=self.num_layers_per_virtual_pipeline_stage,
        )

    @property
    def trainer_ranks(self) -> int:
        """Number of trainer ranks."""
        smallest = self.tensor_model_parallel_size * self.pipeline_model_parallel_size
        return smallest if self.world_size is None else self.world_size


def check_plan_arguments(arguments: PlanArguments) -> None:
    """Raise ConfigError with all that is wrong with the sizes and the trainer's layout."""
    raise_problems(_size_problems(arguments))
    config = read_hf_config(arguments.hf_checkpoint)
    with about("--hf-checkpoint"):
        shape = DecoderSize.from_hf(config)
    raise_problems(placement_problems(arguments.trainer_ranks, shape, arguments.parallel))


def _size_problems(arguments: PlanArguments) -> Iterator[str]:
    for name, value in vars(arguments).items():
        if type(value) is int and value < 1:
            yield f"--{name.replace('_', '-')} {value} must be at least 1"
