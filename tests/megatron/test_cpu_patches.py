# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Each patch of megatron.core is still needed: these tests fail when one can go."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch

from megacurl.config.schema import Config
from megacurl.megatron import cpu
from megacurl.megatron.actor import Actor
from megacurl.models.builder import build_model
from tests import jobs
from tests.world import World

needs_no_gpu = pytest.mark.skipif(cpu.has_gpu(), reason="stand-ins exist only without a GPU")


@needs_no_gpu
def test_cuda_is_cpu_only_inside_its_scope() -> None:
    with cpu.cuda_is_cpu():
        assert torch.zeros(2, device="cuda").device.type == "cpu"
        assert torch.zeros(2).cuda().device.type == "cpu"
        assert torch.zeros(2).to("cuda").device.type == "cpu"
        assert torch.zeros(2).type() == "torch.cuda.FloatTensor"
    assert torch.zeros(2).type() == "torch.FloatTensor"
    with pytest.raises((RuntimeError, AssertionError)):
        torch.zeros(2, device="cuda")


@needs_no_gpu
def test_megatron_still_names_cuda() -> None:
    from megatron.core.optimizer import clip_grads, distrib_optimizer
    from megatron.core.pipeline_parallel import schedules

    assert 'device="cuda"' in inspect.getsource(schedules)
    assert "device='cuda'" in inspect.getsource(clip_grads)
    assert "torch.cuda.FloatTensor" in inspect.getsource(distrib_optimizer)


def slot_of_packed_rope(config: Config) -> tuple[bool, bool]:
    """Whether our rotation is in Megatron's slot, and whether a model is built to use it."""
    jobs.enter(config)
    network = build_model("actor", config.model.hf_checkpoint, config.model, config.parallel)
    return cpu.has_packed_rope(), network.config.apply_rope_fusion


def test_megatron_still_loops_over_the_sequences_of_a_pack(
    world: Callable[[int], World], tiny_model: Callable[[str], Path]
) -> None:
    from megatron.core.models.common.embeddings import rope_utils

    assert "torch.split(t, seqlens)" in inspect.getsource(rope_utils._apply_rotary_pos_emb_thd)
    config = jobs.settings(tiny_model("qwen2-tied"))
    has_te = importlib.util.find_spec("transformer_engine") is not None
    assert world(1).run(slot_of_packed_rope, config) == [(not has_te, not has_te)]


def step_tensors_of_loader() -> tuple[bool, str]:
    """Whether the unpatched loader hands parameters a 'step' that is not theirs."""
    from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer

    patched = DistributedOptimizer._set_main_param_and_optimizer_states
    original = patched.__closure__[0].cell_contents if patched.__closure__ else None
    return getattr(patched, "megacurl", False), inspect.getsource(original or patched)


def writer_queue_process() -> int:
    """The process behind the checkpoint writer's queue, started as the writer does."""
    from megatron.core.dist_checkpointing.strategies import filesystem_async

    queue = filesystem_async._get_write_results_queue()
    pid: int = queue._manager._process.pid
    return pid


def test_checkpoint_writer_ends_with_its_trainer() -> None:
    from megatron.core.dist_checkpointing.strategies import filesystem_async

    if not hasattr(filesystem_async, "_get_write_results_queue"):
        pytest.skip("this megatron-core has no such process: the patch can go with 0.16 support")
    own_world = World(1)
    (pid,) = own_world.run(writer_queue_process)
    assert psutil.pid_exists(pid)
    own_world.kill()
    _, still_there = psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], 10)
    assert not still_there


def test_adam_step_patch_is_in_place_and_needed(world: Callable[[int], World]) -> None:
    """The loader walks over every entry of a parameter's state and has no exception for step."""
    ((patched, source),) = world(1).run(step_tensors_of_loader)
    assert patched
    assert "step" not in source


def bucket_ends(config: Config) -> list[tuple[int, int]]:
    """(end of the last bucket without padding, end of the last parameter) in every buffer."""
    grid = jobs.enter(config)
    network = build_model("actor", config.model.hf_checkpoint, config.model, config.parallel)
    chunks = Actor(network, config, grid, total_steps=1).trainable.chunks
    return [
        (
            sum(bucket.numel_unpadded for bucket in buffer.buckets),
            max(end for _, end, _ in buffer.param_index_map.values()),
        )
        for chunk in chunks
        for buffer in chunk.buffers
    ]


def test_bucket_padding_is_counted_and_must_be(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
) -> None:
    """A tied embedding has a bucket of its own; without the patch it ends behind the buffer."""
    config = jobs.settings(tiny_model("qwen2-tied"), pipeline_model_parallel_size=4)
    patched = [ends for rank in world(4).run(bucket_ends, config) for ends in rank]
    assert all(last <= counted for counted, last in patched)
    unpatched = [ends for rank in world(4).run(bucket_ends_as_they_come, config) for ends in rank]
    assert any(last > counted for counted, last in unpatched)


def bucket_ends_as_they_come(config: Config) -> list[tuple[int, int]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "count_bucket_padding", lambda ddp: None)
        return bucket_ends(config)
