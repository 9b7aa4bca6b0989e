# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Packed by the senders, announced once, unpacked by an engine that knows nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from megacurl.sync.messages import Incoming, Slice, announce, incoming, messages
from megacurl.sync.plan_copy import pack, unpack
from tests.sync.layouts import (
    Case,
    cell_of,
    draw_case,
    engine_shards,
    numbered_tensors,
    real_case,
    trainer_shards,
)

Wire = dict[tuple[int, int, int, int], Tensor]
"""(bucket, sender, replica, engine rank) -> content."""


def send(case: Case, hf: dict[str, Tensor], dtype: torch.dtype) -> Wire:
    """Every trainer rank packs its messages, from its own shards."""
    held, plan, wire = trainer_shards(case, hf), case.plan(), {}
    for sender in range(case.trainer.world_size):
        cell = cell_of(case.trainer, sender)
        shards = {name: t for (*where, name), t in held.items() if tuple(where) == cell}
        for message in messages(plan, sender=sender):
            assert message[:4] not in wire, "two messages where one would do"
            wire[message[:4]] = pack(message, shards.__getitem__, dtype)
    return wire


@pytest.mark.parametrize("seed", range(15))
def test_an_engine_fills_itself_from_the_announcement(seed: int) -> None:
    case = draw_case(random.Random(seed))
    hf = {n: t.double() for n, t in numbered_tensors(case.parameters()).items()}
    wire = send(case, hf, torch.float64)
    assert len(wire) == case.plan().count()[0]
    for replica in range(case.engine.replicas):
        announcement = announce(case.plan(), replica, version=3, dtype="float64")
        told = json.loads(json.dumps(announcement))
        assert (told["version"], told["dtype"]) == (3, "float64")
        for rank, right in enumerate(engine_shards(case, hf)):
            mine = {name: torch.zeros_like(tensor) for name, tensor in right.items()}
            expected = incoming(told, rank)
            assert [m.bucket for m in expected] == sorted(m.bucket for m in expected)
            for message in expected:
                content = wire.pop((message.bucket, message.sender, replica, rank))
                unpack(message, content, mine.__getitem__)
            assert all(torch.equal(mine[name], right[name]) for name in right)
    assert not wire, "messages that nobody waits for"


def test_elements_are_cast_by_the_sender() -> None:
    """fp32 main weights -> bfloat16 on the way: as cast whole."""
    case = draw_case(random.Random(1))
    hf = {n: torch.randn(t.shape) for n, t in numbered_tensors(case.parameters()).items()}
    theirs = send(case, hf, torch.bfloat16)
    ours = send(case, {n: t.bfloat16() for n, t in hf.items()}, torch.bfloat16)
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[key], ours[key]) for key in ours)


def test_a_packed_message_keeps_no_shard_alive() -> None:
    """The next step may change the weights while the message is on its way."""
    case = draw_case(random.Random(2))
    hf = {n: t.float() for n, t in numbered_tensors(case.parameters()).items()}
    held = trainer_shards(case, hf)
    message = next(messages(case.plan(), sender=0))
    content = pack(message, lambda name: held[0, 0, name], torch.float32)
    before = content.clone()
    for tensor in held.values():
        tensor.zero_()
    assert torch.equal(content, before) and before.abs().sum() > 0


@pytest.mark.parametrize("elements", [5, 7])
def test_another_length_than_announced_is_refused(elements: int) -> None:
    message = Incoming(4, 9, (Slice(("a",), 0, 0, 2, 2), Slice(("b",), 0, 0, 2, 1)))
    mine = {"a": torch.zeros(2, 2), "b": torch.zeros(2)}
    lookup: Callable[[str], Tensor] = mine.__getitem__
    said = f"bucket 4 from trainer rank 9 has {elements} elements, 6 were announced"
    with pytest.raises(ValueError, match=said):
        unpack(message, torch.ones(elements), lookup)
    assert all(not tensor.any() for tensor in mine.values())
    unpack(message, torch.ones(6), lookup)
    assert all(tensor.all() for tensor in mine.values())


def test_the_announcement_of_a_large_model_is_small() -> None:
    """Once a sync and engine: under a megabyte for 72B over 8 ranks."""
    plan = real_case("qwen2.5-72b", 8, 16, 4, 1, 8, 64).plan()
    assert len(json.dumps(announce(plan, 5, version=1, dtype="bfloat16"))) < 1_000_000
