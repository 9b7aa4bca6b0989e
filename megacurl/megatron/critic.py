# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The critic: values of a rollout, and regression on its returns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.value_loss import value_loss
from megacurl.config.schema import Config
from megacurl.megatron.groups import Grid
from megacurl.megatron.packing import PackedBatch
from megacurl.megatron.shard import MiniBatch, Shard
from megacurl.megatron.trainable import Trainable
from megacurl.models.network import Network


@dataclass(frozen=True)
class Values:
    """values: fp32 [R], V of the state before each response token; end_values: [B], V of the state
    after the last one. On the last stage; empty on the others."""

    values: Tensor
    end_values: Tensor


def _values(output: Tensor, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    line = output[0, :, 0]
    return line[batch.predict_index], line[batch.end_index]


class Critic:
    """The value model that is trained."""

    def __init__(self, network: Network, config: Config, grid: Grid, total_steps: int) -> None:
        self.network, self.config, self.grid = network, config, grid
        self.trainable = Trainable(
            "critic",
            network,
            config.optimizer,
            config.parallel,
            lr=config.optimizer.critic_lr,
            total_steps=total_steps,
        )

    def values(self, shard: Shard) -> Values:
        """Values of the shard under the present weights."""
        parts = self.trainable.forward(shard.batches, _values)
        empty = torch.empty(0, device=self.grid.device)
        return Values(*(torch.cat([p[k] for p in parts] or [empty]) for k in (0, 1)))

    def update(self, shard: Shard, old: Values, returns: Tensor) -> dict[str, float]:
        """All optimizer steps on a rollout.

        Args:
            shard: the rank's share.
            old: values at rollout time, for the clipped loss.
            returns: [R] targets of the shard on the last stage.

        Returns:
            Metrics, the same on every rank.
        """
        losses, grad_norms = [], []
        with self.trainable.in_use():
            for epoch in range(self.config.training.critic_epochs):
                for mini_batch in shard.mini_batches("critic", epoch):
                    if mini_batch.denominators.empty:
                        continue
                    loss = _CriticLoss(self.config, shard, mini_batch, old, returns)
                    parts = self.trainable.accumulate(mini_batch.batches, loss)
                    local = torch.zeros(1, dtype=torch.float64, device=self.grid.device)
                    for value in parts:
                        local += value
                    losses.append(self.grid.sum_over_owners(local).item())
                    grad_norms.append(self.trainable.apply())
        if not losses:
            return {}
        return {
            "critic/loss": sum(losses) / len(losses),
            "critic/grad_norm": sum(grad_norms) / len(grad_norms),
            "critic/lr": self.trainable.lr,
        }


@dataclass(frozen=True)
class _CriticLoss:
    """The loss of one micro-batch of a mini-batch, as a part of the mini-batch's global sum."""

    config: Config
    shard: Shard
    mini_batch: MiniBatch
    old: Values
    returns: Tensor

    def __call__(self, output: Tensor, batch: PackedBatch, number: int) -> tuple[Tensor, Tensor]:
        micro = self.mini_batch.micro_batches[number]
        values, _ = _values(output, batch)
        loss, _ = value_loss(
            values,
            self.returns[micro.tokens],
            self.old.values[micro.tokens],
            self.shard.mask[micro.tokens],
            self.shard.coefficients(micro, self.mini_batch.denominators),
            value_clip=self.config.algorithm.value_clip,
        )
        return loss, loss.detach().double()
