# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Offloaded memory is really gone, and comes back as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from megacurl.config.schema import Config
from megacurl.megatron.actor import Actor
from megacurl.megatron.offload import Offloadable
from megacurl.megatron.shard import Shard
from megacurl.megatron.trainable import inner_optimizers
from megacurl.models.builder import build_model
from megacurl.trajectory import Trajectory
from tests import jobs
from tests.tiny import make_trajectories
from tests.world import World


def test_views_stay_valid() -> None:
    flat = torch.arange(10.0)
    first, last, other = flat[:4].view(2, 2), flat[6:], torch.ones(3, dtype=torch.int64)
    parked = Offloadable(lambda: [first, last, other], enabled=True)
    parked.move_out()
    assert parked.is_out
    assert flat.untyped_storage().nbytes() == other.untyped_storage().nbytes() == 0
    with parked.in_use():
        assert flat.tolist() == list(range(10))
        last.mul_(2)
        with parked.in_use():
            assert first.tolist() == [[0, 1], [2, 3]]
        assert not parked.is_out
    assert parked.is_out
    with parked.in_use():
        assert flat.tolist() == [0, 1, 2, 3, 4, 5, 12, 14, 16, 18]
        assert other.tolist() == [1, 1, 1]


def test_state_that_is_replaced() -> None:
    """An optimizer's tensors may be other ones the next time, also in the place of old ones."""
    held = [torch.ones(4)]
    parked = Offloadable(lambda: held, enabled=True)
    for size in (4, 7, 2):
        held[0] = torch.full((size,), float(size))
        with parked.in_use():
            pass
        with parked.in_use():
            assert held[0].tolist() == [size] * size
        held.clear()
        with parked.in_use():
            pass
        held.append(torch.empty(0))


def test_comes_back_after_an_error() -> None:
    tensor = torch.ones(2)
    parked = Offloadable(lambda: [tensor], enabled=True)
    with pytest.raises(RuntimeError, match="inside"), parked.in_use():
        raise RuntimeError("inside")
    with parked.in_use():
        assert tensor.tolist() == [1, 1]


def test_content_that_need_not_be_kept() -> None:
    tensor = torch.ones(5)
    parked = Offloadable(lambda: [tensor], enabled=True, keep_content=False)
    parked.move_out()
    with parked.in_use():
        tensor.zero_()
        assert tensor.tolist() == [0] * 5
    assert not parked._host


def test_does_nothing_unless_enabled() -> None:
    tensor = torch.ones(2)
    parked = Offloadable(lambda: [tensor], enabled=False)
    parked.move_out()
    assert not parked.is_out
    assert tensor.tolist() == [1, 1]


def bytes_of_actor(actor: Actor) -> dict[str, int]:
    """Bytes of weights, gradient buffers and optimizer state; what shares memory counts once."""
    seen: set[int] = set()

    def count(tensors: Iterator[Tensor]) -> int:
        total = 0
        for tensor in tensors:
            storage = tensor.untyped_storage()
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                total += storage.nbytes()
        return total

    chunks = actor.trainable.chunks
    optimizers = inner_optimizers(actor.trainable.optimizer)
    return {
        "weights": count(p for chunk in chunks for p in chunk.parameters()),
        "gradients": count(b.grad_data for chunk in chunks for b in chunk.buffers),
        "optimizer": count(
            t
            for optimizer in optimizers
            for t in [
                *(p for group in optimizer.param_groups for p in group["params"]),
                *(t for entry in optimizer.state.values() for t in entry.values()),
            ]
            if isinstance(t, Tensor)
        ),
    }


def sizes_through_a_step(
    config: Config, trajectories: list[Trajectory]
) -> list[tuple[str, dict[str, int]]]:
    grid = jobs.enter(config)
    network = build_model("actor", config.model.hf_checkpoint, config.model, config.parallel)
    actor = Actor(network, config, grid, total_steps=2)
    sizes = [("built", bytes_of_actor(actor))]
    shard = Shard(trajectories, config, grid, step=0)
    old = actor.log_probs(shard)
    sizes.append(("scored", bytes_of_actor(actor)))
    actor.update(shard, old, torch.ones(len(shard.mask)))
    sizes.append(("updated", bytes_of_actor(actor)))
    with network.weights.in_use():
        sizes.append(("weights only", bytes_of_actor(actor)))
    with actor.trainable.in_use():
        sizes.append(("everything", bytes_of_actor(actor)))
    return sizes


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
@pytest.mark.parametrize("distributed", [True, False], ids=["sharded-adam", "plain-adam"])
@pytest.mark.parametrize("offload", ["none", "optimizer", "all"])
def test_what_an_idle_model_holds(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    offload: str,
    distributed: bool,
    bf16: bool,
) -> None:
    config = jobs.settings(
        tiny_model("llama-untied"),
        offload=offload,
        use_distributed_optimizer=distributed,
        bf16=bf16,
    )
    ((*idle, weights, everything),) = world(1).run(
        sizes_through_a_step, config, make_trajectories()
    )
    assert min(everything[1].values()) > 0
    if offload == "all":
        assert weights[1] == {**everything[1], "gradients": 0, "optimizer": 0}
    for when, sizes in idle:
        kept = {"none": 3, "optimizer": 2, "all": 0}[offload]
        for part in list(sizes)[kept:]:
            assert sizes[part] == 0, (when, part)
        for part in list(sizes)[:kept]:
            if (when, part) == ("updated", "optimizer") or part != "optimizer":
                assert sizes[part] == everything[1][part], (when, part)
