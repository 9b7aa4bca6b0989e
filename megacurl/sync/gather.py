# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The trainer's weights as Hugging Face tensors: gathered over TP, broadcast over PP, in buckets.

The plan (which stage owns what, how large) is apart from the communication. Every rank walks the
same plan and receives every tensor, so whoever needs it, an engine or a file, just iterates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from torch import Tensor

from megacurl.megatron.groups import Grid
from megacurl.models.network import Network
from megacurl.models.weight_map import Parameter
from megacurl.sync.buckets import cut_into_buckets


@dataclass(frozen=True)
class PlannedParameter:
    """A Megatron parameter of the whole model, where it lives and how large a shard is."""

    parameter: Parameter
    stage: int
    shard_shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def numel(self) -> int:
        return int(torch.Size(self.shard_shape).numel())

    def hf_shapes(self, tp_size: int) -> list[tuple[str, tuple[int, ...]]]:
        """(HF name, full shape), worked out on the meta device."""
        shards = [torch.empty(self.shard_shape, device="meta") for _ in range(tp_size)]
        tensors = self.parameter.cut.to_hf(shards)
        return [(n, tuple(t.shape)) for n, t in zip(self.parameter.hf, tensors, strict=True)]


Bucket = tuple[PlannedParameter, ...]


@dataclass(frozen=True)
class GatherPlan:
    """Buckets in the order of the HF model; a bucket has one stage and one dtype."""

    buckets: tuple[Bucket, ...]

    @property
    def parameters(self) -> list[PlannedParameter]:
        return [p for bucket in self.buckets for p in bucket]


def plan_gather(network: Network, grid: Grid, bucket_bytes: int) -> GatherPlan:
    """Agree on the plan; collective over all ranks.

    Raises:
        ValueError: if a parameter of the weight map is on no stage.
    """
    local, weight_map = {}, network.weight_map
    for name, parameter, first_layer in network.local_parameters():
        entry = weight_map.find(name, first_layer)
        local[entry.megatron] = (grid.pp_rank, tuple(parameter.shape), parameter.dtype)
    owners: dict[str, tuple[int, tuple[int, ...], torch.dtype]] = {}
    for found in grid.gather_objects(local):
        for name, (stage, shape, dtype) in found.items():
            if name not in owners or stage < owners[name][0]:  # tied copies: the first stage's
                owners[name] = (stage, shape, dtype)
    wanted = weight_map.parameters()
    missing = [p.megatron for p in wanted if p.megatron not in owners]
    if missing:
        raise ValueError(f"no pipeline stage holds {', '.join(missing)}")
    planned = [PlannedParameter(p, *owners[p.megatron]) for p in wanted]
    buckets = cut_into_buckets(
        planned,
        lambda p: p.numel * p.dtype.itemsize * grid.tp_size,
        bucket_bytes,
        lambda p: (p.stage, p.dtype),
    )
    return GatherPlan(tuple(buckets))


def gather_hf_weights(
    network: Network,
    plan: GatherPlan,
    grid: Grid,
    read: Callable[[torch.nn.Parameter], Tensor] = torch.Tensor.detach,
) -> Iterator[list[tuple[str, Tensor]]]:
    """(HF name, full tensor) of every bucket, on every rank; collective over all ranks.

    Every bucket comes in fresh memory: a consumer may keep it. ``read`` says what of a parameter is
    gathered: itself, or something of its shape and dtype such as its gradient.
    """
    mine = {
        network.weight_map.find(name, first_layer).megatron: read(parameter)
        for name, parameter, first_layer in network.local_parameters()
    }
    for bucket in plan.buckets:
        shards = _gather_bucket(bucket, mine, grid)
        named: list[tuple[str, Tensor]] = []
        for planned, pieces in zip(bucket, shards, strict=True):
            tensors = planned.parameter.cut.to_hf(pieces)
            named += [
                (name, tensor.contiguous())
                for name, tensor in zip(planned.parameter.hf, tensors, strict=True)
            ]
        yield named


def _gather_bucket(bucket: Bucket, mine: dict[str, Tensor], grid: Grid) -> list[list[Tensor]]:
    """For every parameter of the bucket, the shards of all TP ranks."""
    sizes = [p.numel for p in bucket]
    flat = torch.empty(grid.tp_size, sum(sizes), dtype=bucket[0].dtype, device=grid.device)
    if bucket[0].stage == grid.pp_rank:
        local = torch.cat([mine[p.parameter.megatron].reshape(-1) for p in bucket])
        group = parallel_state.get_tensor_model_parallel_group()
        dist.all_gather(list(flat.unbind()), local, group=group)
    if grid.pp_size > 1:
        group = parallel_state.get_pipeline_model_parallel_group()
        dist.broadcast(flat, dist.get_global_rank(group, bucket[0].stage), group=group)
    columns = flat.split(sizes, dim=1)
    return [
        [shard.reshape(p.shard_shape) for shard in part.unbind()]
        for p, part in zip(bucket, columns, strict=True)
    ]
