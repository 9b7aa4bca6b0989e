# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Process groups: this rank's place in the TP x PP x DP grid, and the few collectives we add."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from megacurl.config.schema import ParallelConfig
from megacurl.megatron import cpu


@dataclass(frozen=True)
class Grid:
    """Where this rank stands. ``host_group`` is a gloo group of all ranks for Python objects."""

    rank: int
    world_size: int
    tp_rank: int
    tp_size: int
    pp_rank: int
    pp_size: int
    dp_rank: int
    dp_size: int
    device: torch.device
    host_group: Any

    @property
    def is_first_stage(self) -> bool:
        return self.pp_rank == 0

    @property
    def is_last_stage(self) -> bool:
        return self.pp_rank == self.pp_size - 1

    @property
    def owns_results(self) -> bool:
        """True on the one rank per DP shard that speaks for it: last stage, first TP rank."""
        return self.is_last_stage and self.tp_rank == 0

    def sum_over_owners(self, local: Tensor) -> Tensor:
        """Sum ``local`` over the DP shards and hand the sum to every rank.

        ``local``: any shape, meaningful on the last stage; other ranks' content is ignored.
        """
        total = local.detach().clone() if self.owns_results else torch.zeros_like(local)
        dist.all_reduce(total)
        return total

    def max_over_owners(self, local: Tensor) -> Tensor:
        """Maximum over the DP shards of a non-negative ``local``, handed to every rank."""
        highest = local.detach().clone() if self.owns_results else torch.zeros_like(local)
        dist.all_reduce(highest, op=dist.ReduceOp.MAX)
        return highest

    def gather_from_owners(self, local: Tensor) -> list[Tensor]:
        """``local`` of every DP shard in rank order, on every rank; other ranks' is ignored."""
        rows = local.new_zeros(self.dp_size, *local.shape)
        rows[self.dp_rank] = local
        return list(self.sum_over_owners(rows).unbind())

    def gather_over_dp(self, local: Tensor) -> list[Tensor]:
        """``local`` of the ranks that differ from this one in their DP rank only, in order."""
        from megatron.core import parallel_state

        parts = [torch.empty_like(local) for _ in range(self.dp_size)]
        dist.all_gather(parts, local, group=parallel_state.get_data_parallel_group())
        return parts

    def gather_objects(self, item: Any) -> list[Any]:
        """Every rank's ``item`` in rank order, on every rank."""
        items: list[Any] = [None] * self.world_size
        dist.all_gather_object(items, item, group=self.host_group)
        return items

    def barrier(self) -> None:
        dist.barrier(group=self.host_group)


def initialize(config: ParallelConfig, seed: int) -> Grid:
    """Join the world that torchrun describes (or a world of one) and build Megatron's groups."""
    cpu.install()
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    timeout = datetime.timedelta(minutes=config.distributed_timeout_minutes)
    gpu = cpu.has_gpu()
    if gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        for name, value in (("RANK", "0"), ("WORLD_SIZE", "1")):
            os.environ.setdefault(name, value)
        if "MASTER_ADDR" in os.environ:
            dist.init_process_group("nccl" if gpu else "gloo", timeout=timeout)
        else:
            store = dist.HashStore()  # type: ignore[attr-defined]
            dist.init_process_group(
                "nccl" if gpu else "gloo", store=store, rank=0, world_size=1, timeout=timeout
            )
    with cpu.cuda_is_cpu():
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=config.tensor_model_parallel_size,
            pipeline_model_parallel_size=config.pipeline_model_parallel_size,
            distributed_timeout_minutes=config.distributed_timeout_minutes,
        )
        model_parallel_cuda_manual_seed(seed)
    return current_grid()


def current_grid() -> Grid:
    """The grid of the groups that exist now."""
    from megatron.core import parallel_state as ps

    device = torch.device("cuda", torch.cuda.current_device()) if cpu.has_gpu() else "cpu"
    return Grid(
        rank=dist.get_rank(),
        world_size=dist.get_world_size(),
        tp_rank=ps.get_tensor_model_parallel_rank(),
        tp_size=ps.get_tensor_model_parallel_world_size(),
        pp_rank=ps.get_pipeline_model_parallel_rank(),
        pp_size=ps.get_pipeline_model_parallel_world_size(),
        dp_rank=ps.get_data_parallel_rank(),
        dp_size=ps.get_data_parallel_world_size(),
        device=torch.device(device),
        host_group=_host_group(),
    )


_HOST_GROUPS: dict[int, Any] = {}


def _host_group() -> Any:
    """A gloo group of all ranks, made once per world."""
    world = id(dist.group.WORLD)
    if world not in _HOST_GROUPS:
        _HOST_GROUPS.clear()
        _HOST_GROUPS[world] = (
            dist.group.WORLD if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
        )
    return _HOST_GROUPS[world]


def shut_down() -> None:
    """Leave the groups; safe to call when none exist."""
    from megatron.core import parallel_state

    if dist.is_initialized():
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()
