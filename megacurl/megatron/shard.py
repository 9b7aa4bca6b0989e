# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The part of a rollout that one data parallel rank owns, packed in the order of the plan."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.aggregation import (
    Denominators,
    global_denominators,
    prompt_token_counts,
    token_coefficients,
)
from megacurl.algorithms.truncation import overlong_filter
from megacurl.config.batches import actor_updates, critic_updates
from megacurl.config.schema import Config
from megacurl.megatron.groups import Grid
from megacurl.megatron.packing import PackedBatch, pack
from megacurl.megatron.schedule import plan_micro_batches
from megacurl.trajectory import Trajectory


@dataclass(frozen=True)
class MicroBatch:
    """A packed forward pass and where its B responses and R tokens are in the shard."""

    batch: PackedBatch
    tokens: slice
    responses: slice


@dataclass(frozen=True)
class MiniBatch:
    """Micro-batches of one optimizer step on this rank, and its global counts."""

    micro_batches: tuple[MicroBatch, ...]
    denominators: Denominators

    @property
    def batches(self) -> list[PackedBatch]:
        return [micro.batch for micro in self.micro_batches]


class Shard:
    """Response tokens [R] and responses [B] of this rank; rollout-wide vectors [N] beside them.

    Every token tensor of the shard (mask, values, log-probs, advantages …) is packed in the same
    order, that of the plan, so a micro-batch is a slice of each.
    """

    def __init__(
        self, trajectories: Sequence[Trajectory], config: Config, grid: Grid, step: int
    ) -> None:
        """Plan the step and pack this rank's share; every rank makes the same plan."""
        training = config.training
        sequences = len(trajectories)
        interleaved = config.parallel.num_layers_per_virtual_pipeline_stage is not None
        order = list(range(sequences))
        random.Random(f"{training.seed}/{step}").shuffle(order)
        updates = {"actor": actor_updates(training, sequences)}
        if config.algorithm.use_critic:
            updates["critic"] = critic_updates(training, sequences)
        # The finest cut of which each model's mini-batches are whole numbers of parts.
        units = math.lcm(*updates.values())
        self._units_per_step = {role: units // count for role, count in updates.items()}
        plan = plan_micro_batches(
            [t.num_tokens for t in trajectories],
            order=order,
            mini_batches=units,
            dp_size=grid.dp_size,
            max_tokens=training.max_tokens_per_micro_batch,
            count_multiple=grid.pp_size if interleaved else 1,
        )
        self._shuffle_key = (training.seed, step)
        self._config = config
        self._plan = plan
        self.trajectories = trajectories
        self.device = grid.device
        self.order = plan.order_of_rank(grid.dp_rank)
        self._read_trajectories()
        self._pack(grid)

    def _read_trajectories(self) -> None:
        own = [self.trajectories[i] for i in self.order]
        device = self.device

        def vector(values: list[float], dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        everyone = self.trajectories
        self.index = vector(list(self.order), torch.long)
        self.all_rewards = vector([t.reward for t in everyone], torch.float32)
        self.all_group = vector([t.group for t in everyone], torch.long)
        self.all_scores = vector([t.score for t in everyone], torch.float64)
        self.all_correct = vector([t.correct for t in everyone], torch.bool)
        self.all_truncated = vector([t.truncated for t in everyone], torch.bool)
        lengths = [len(t.response_ids) for t in own]
        self.cu_seqlens = torch.tensor([0, *lengths], device=device).cumsum(0).to(torch.int32)
        self.correct = vector([t.correct for t in own], torch.bool)
        self.truncated = vector([t.truncated for t in own], torch.bool)
        self.behaviour_log_probs = vector([p for t in own for p in t.log_probs], torch.float32)
        mask = torch.ones(sum(lengths), dtype=torch.bool, device=device)
        all_lengths = vector([len(t.response_ids) for t in everyone], torch.long)
        if self._config.algorithm.overlong_filter:
            mask = overlong_filter(mask, self.truncated, self.cu_seqlens)
            all_lengths = torch.where(self.all_truncated, 0, all_lengths)
        self.mask = mask
        self.all_valid_lengths = all_lengths

    def _pack(self, grid: Grid) -> None:
        multiple = grid.tp_size if self._config.parallel.sequence_parallel else 1
        self._units: list[tuple[MicroBatch, ...]] = []
        token = response = 0
        for unit in self._plan.of_rank(grid.dp_rank):
            micros = []
            for indices in unit:
                chosen = [self.trajectories[i] for i in indices]
                batch = pack(
                    [t.prompt_ids for t in chosen],
                    [t.response_ids for t in chosen],
                    device=self.device,
                    multiple=multiple,
                )
                end = token + batch.targets.numel()
                micros.append(
                    MicroBatch(batch, slice(token, end), slice(response, response + len(chosen)))
                )
                token, response = end, response + len(chosen)
            self._units.append(tuple(micros))

    @property
    def batches(self) -> list[PackedBatch]:
        """Every packed forward pass of the shard, in order."""
        return [micro.batch for unit in self._units for micro in unit]

    def mini_batches(self, role: str, epoch: int) -> list[MiniBatch]:
        """The optimizer steps of an epoch: their content is fixed, their order is the epoch's."""
        per_step = self._units_per_step[role]
        steps = []
        for start in range(0, len(self._units), per_step):
            micros = tuple(m for unit in self._units[start : start + per_step] for m in unit)
            steps.append(MiniBatch(micros, self._denominators(start, per_step)))
        random.Random(f"{self._shuffle_key}/{role}/{epoch}").shuffle(steps)
        return steps

    def _denominators(self, first_unit: int, units: int) -> Denominators:
        chosen = [
            i
            for unit in self._plan.mini_batches[first_unit : first_unit + units]
            for rank in unit
            for micro in rank
            for i in micro
        ]
        index = torch.tensor(chosen, device=self.device)
        return global_denominators(
            self.all_valid_lengths[index],
            correct=self.all_correct[index],
            group=self.all_group[index],
            max_length=self._config.rollout.rollout_max_response_len,
        )

    def coefficients(self, micro: MicroBatch, denominators: Denominators) -> Tensor:
        """Loss coefficient of every token of a micro-batch, [R]."""
        mode = self._config.algorithm.loss_agg_mode
        prompt_tokens = None
        if mode == "prompt-mean-token-mean":
            everyone = prompt_token_counts(self.all_valid_lengths, self.all_group)
            prompt_tokens = everyone[self.index[micro.responses]]
        return token_coefficients(
            self.mask[micro.tokens],
            micro.batch.cu_seqlens,
            mode,
            denominators,
            prompt_tokens=prompt_tokens,
        )

    def spread_to_all(self, own: Tensor, grid: Grid) -> Tensor:
        """[..., B] of every shard -> [..., N] in rollout order, on every rank; collective."""
        everyone = own.new_zeros(*own.shape[:-1], len(self.trajectories))
        everyone[..., self.index] = own
        return grid.sum_over_owners(everyone)
