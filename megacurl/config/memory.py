# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Bytes of weights, gradients and optimizer state on a rank, from parameter counts alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from megacurl.config.layout import Layout
from megacurl.config.schema import Config, OffloadMode

_FP32_BYTES = 4
_BF16_BYTES = 2
_ADAM_MOMENTS = 2


@dataclass(frozen=True)
class StateBytes:
    """Bytes on one rank. Activations, the rollout engine and buffers come on top."""

    weights: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        """All three together."""
        return self.weights + self.gradients + self.optimizer


@dataclass(frozen=True)
class PeakBytes:
    """Bytes of all models on a rank: the most on the device at a time, and in host memory."""

    device: float
    host: float


def peak_bytes(models: Collection[StateBytes], offload: OffloadMode) -> PeakBytes:
    """What ``--offload`` leaves on the device while the largest model trains.

    Gradient buffers have no copy in host memory: they are written before they are read.
    """
    optimizer = [model.optimizer for model in models]
    if offload == "none":
        return PeakBytes(sum(model.total for model in models), 0)
    if offload == "optimizer":
        resident = sum(model.weights + model.gradients for model in models)
        return PeakBytes(resident + max(optimizer), sum(optimizer))
    host = sum(model.weights for model in models) + sum(optimizer)
    return PeakBytes(max(model.total for model in models), host)


def trained_model_bytes(parameters: int, config: Config, dp: int) -> StateBytes:
    """Bytes of a trained model with ``parameters`` on the rank.

    Gradients accumulate in fp32. AdamW holds two fp32 moments, and with ``bf16`` an fp32 copy of
    the weights; the distributed optimizer divides these over the ``dp`` data parallel ranks.
    """
    bf16 = config.model.bf16
    optimizer = parameters * _FP32_BYTES * (_ADAM_MOMENTS + bf16)
    shards = dp if config.parallel.use_distributed_optimizer else 1
    return StateBytes(
        weights=parameters * (_BF16_BYTES if bf16 else _FP32_BYTES),
        gradients=parameters * _FP32_BYTES,
        optimizer=optimizer / shards,
    )


def stage_bytes(layout: Layout, config: Config, stage: int) -> dict[str, StateBytes]:
    """Bytes per model on each rank of pipeline stage ``stage``; with KL a reference model too."""
    actor = layout.actor.stage_parameters(stage)
    models = {"actor": trained_model_bytes(actor, config, layout.dp)}
    if layout.critic is not None:
        critic = layout.critic.stage_parameters(stage)
        models["critic"] = trained_model_bytes(critic, config, layout.dp)
    if config.algorithm.kl_coef > 0:
        models["reference"] = StateBytes(models["actor"].weights, 0, 0)
    return models
