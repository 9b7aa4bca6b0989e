# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every rank of a Megatron layout in turn, in one process: its network, loaded from a folder.

torch's "fake" backend lets a process be any rank of any world as long as it only asks who it is.
Run as a program so that the process group ends with it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch import Tensor
from torch.testing._internal.distributed.fake_pg import FakeStore

from megacurl.config.schema import ModelConfig, ParallelConfig
from megacurl.megatron import cpu
from megacurl.models.builder import build_model
from megacurl.models.family import load_shape
from megacurl.sync.engine_layout import EngineLayout
from megacurl.sync.plan_copy import copy_transfers
from megacurl.sync.trainer_layout import TrainerLayout
from tests.sync.layouts import Case, engine_shards

Shards = dict[tuple[int, str], Tensor]

LAYOUTS = [
    (ParallelConfig(tensor_model_parallel_size=2, pipeline_model_parallel_size=2), 8),
    (
        ParallelConfig(
            pipeline_model_parallel_size=2,
            num_layers_per_virtual_pipeline_stage=1,
        ),
        4,
    ),
    (ParallelConfig(tensor_model_parallel_size=2, pipeline_model_parallel_size=4), 8),
]


def network_shards(folder: Path, parallel: ParallelConfig, rank: int, world_size: int) -> Shards:
    """(rank, Megatron name with the layer's number in the model) -> parameter of that rank."""
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    with cpu.cuda_is_cpu():
        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=parallel.tensor_model_parallel_size,
            pipeline_model_parallel_size=parallel.pipeline_model_parallel_size,
            create_gloo_process_groups=False,
        )
        model_parallel_cuda_manual_seed(1)
    # The one thing that loading asks of the other ranks is whether their files were sound.
    with mock.patch("megacurl.models.load_hf._refuse_broken"):
        network = build_model("actor", folder, ModelConfig(), parallel)
    shards = {
        (rank, network.weight_map.find(name, first).megatron): parameter.detach()
        for name, parameter, first in network.local_parameters()
    }
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
    return shards


def check(folder: Path, parallel: ParallelConfig, world_size: int, engine: EngineLayout) -> None:
    """The plan finds every shard where Megatron has it, and fills the engines from these."""
    _, shape = load_shape(folder)
    tp, pp = parallel.tensor_model_parallel_size, parallel.pipeline_model_parallel_size
    chunks = shape.num_layers // pp // (parallel.num_layers_per_virtual_pipeline_stage or 10**9)
    trainer = TrainerLayout(tp, world_size // (tp * pp), pp, shape.num_layers, max(chunks, 1))
    case = Case(shape, 128, trainer, engine, bucket_elements=2000)
    held: Shards = {}
    for rank in range(world_size):
        held |= network_shards(folder, parallel, rank, world_size)
    planned = {
        (rank, parameter.megatron)
        for parameter in case.parameters()
        for stage in trainer.stages(parameter)
        for tp_rank in range(tp)
        for rank in trainer.cell_ranks((stage, tp_rank))
    }
    assert held.keys() == planned, held.keys() ^ planned
    loaded = load_file(folder / "model.safetensors")
    hf = {name: loaded[name] for parameter in case.parameters() for name in parameter.hf}
    wanted = engine_shards(case, hf)
    got = [
        [{n: torch.zeros_like(t) for n, t in shard.items()} for shard in wanted]
        for _ in range(engine.replicas)
    ]
    copy_transfers(
        case.plan().transfers(),
        lambda rank, name: held[rank, name],
        lambda replica, rank, name: got[replica][rank][name],
    )
    for replica in got:
        for mine, right in zip(replica, wanted, strict=True):
            wrong = [name for name in right if not torch.equal(mine[name], right[name])]
            assert not wrong, wrong


if __name__ == "__main__":
    cpu.install()
    for model in sys.argv[1:]:
        for parallel, world_size in LAYOUTS:
            check(Path(model), parallel, world_size, EngineLayout(tp=4, replicas=3))
            print(f"checked {world_size} ranks")
