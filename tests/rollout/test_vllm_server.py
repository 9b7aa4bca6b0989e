# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Two real vLLM servers: exact weights or none, partial answers, and servers that fail."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from megacurl.rollout import (
    EngineStateError,
    Request,
    SamplingSpec,
    TensorMeta,
    UpdateError,
    create_engine,
)
from megacurl.rollout.servers import vllm_update
from megacurl.rollout.servers.launch import LaunchedServers, VLLMSettings
from megacurl.rollout.vllm_server_engine import VLLMServerEngine

from .conftest import NEEDS_VLLM

pytestmark = NEEDS_VLLM
LENGTH = 128
REQUESTS = [
    Request(
        f"q{i}", tuple(range(7, 30 + 9 * i)), SamplingSpec(40, ignore_eos=True), tuple(range(6))
    )
    for i in range(6)
]


@pytest.fixture(scope="module")
def servers(
    folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LaunchedServers]:
    """Two servers of the tied model: what is hard about it is the copy of its head."""
    # So few tokens at a time that prompts do not fit together: none may be cut in two.
    settings = VLLMSettings(str(folders["qwen2"]), "float32", LENGTH, 16, 16, batched_tokens=LENGTH)
    with LaunchedServers(settings, 2, tmp_path_factory.mktemp("servers")) as launched:
        yield launched
        pids = launched.pids
    assert not any(_is_running(pid) for pid in pids)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def engine_on(servers: LaunchedServers, folders: dict[str, Path]) -> VLLMServerEngine:
    engine = create_engine(
        "vllm-server",
        model=folders["qwen2"],
        max_model_len=LENGTH,
        max_batch_size=8,
        urls=servers.urls,
        health_timeout=5.0,
    )
    assert isinstance(engine, VLLMServerEngine)
    engine.start()
    return engine


@pytest.fixture
def weights(folders: dict[str, Path]) -> dict[str, Tensor]:
    return load_file(folders["qwen2"] / "model.safetensors")


def send(engine: VLLMServerEngine, weights: dict[str, Tensor], version: int) -> None:
    """An update in two buckets; the second reuses the first one's memory."""
    metas = engine.manifest()
    update = engine.open_update(metas, version)
    for bucket in (metas[: len(metas) // 2], metas[len(metas) // 2 :]):
        named = [(meta.name, weights[meta.name].clone()) for meta in bucket]
        update.load(named)
        for _, tensor in named:
            tensor.fill_(torch.nan)
    update.commit()


def gap(engine: VLLMServerEngine, folder: Path) -> float:
    """Largest difference of a log-prob to the transformers engine's."""
    judge = create_engine("transformers", model=folder, max_model_len=LENGTH)
    judge.start()
    samples = engine.generate(REQUESTS)
    prompts = {request.id: request.prompt_ids for request in REQUESTS}
    scores = judge.score([prompts[s.request_id] for s in samples], [s.token_ids for s in samples])
    return max(
        abs(mine - theirs)
        for sample, score in zip(samples, scores, strict=True)
        for mine, theirs in zip(sample.log_probs, score, strict=True)
    )


def test_weights_arrive_and_are_used(
    servers: LaunchedServers,
    folders: dict[str, Path],
    weights: dict[str, Tensor],
    tmp_path: Path,
) -> None:
    engine = engine_on(servers, folders)
    with pytest.raises(EngineStateError, match="no_weights"):
        engine.generate(REQUESTS)
    send(engine, weights, 3)
    judge = create_engine("transformers", model=folders["qwen2"])
    judge.start()
    assert engine.digest() == judge.digest()
    assert gap(engine, folders["qwen2"]) < 1e-4
    first, second = engine.generate(REQUESTS), engine.generate(REQUESTS)
    assert [s.token_ids for s in first] == [s.token_ids for s in second]
    assert len({tuple(s.token_ids) for s in first}) > len(REQUESTS)  # seeds matter
    assert {s.version for s in first} == {3} and not engine.lost
    cells = [(request.id, i) for request in REQUESTS for i in range(6)]
    assert [(s.request_id, s.index) for s in first] == cells

    # Other weights; a prefix cache or a head of the old ones would show in the log-probs.
    other = {name: tensor * 1.1 for name, tensor in weights.items()}
    send(engine, other, 4)
    assert gap(engine, folders["qwen2"]) > 1e-3
    for file in folders["qwen2"].glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file(other, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert gap(engine, tmp_path) < 1e-4


def test_a_follower_learns_what_the_leader_sent(
    servers: LaunchedServers, folders: dict[str, Path], weights: dict[str, Tensor]
) -> None:
    leader, follower = engine_on(servers, folders), engine_on(servers, folders)
    follower._leader = False
    with pytest.raises(EngineStateError, match="the leader sends"):
        send(follower, weights, 7)
    send(leader, weights, 7)
    with pytest.raises(EngineStateError, match=r"no server holds version 8.*version 7"):
        follower.follow(8)
    with pytest.raises(EngineStateError, match="dirty"):
        follower.generate(REQUESTS)
    follower.follow(7)
    mine, theirs = leader.generate(REQUESTS), follower.generate(REQUESTS)
    assert [s.token_ids for s in mine] == [s.token_ids for s in theirs]


def test_a_flipped_bit_is_named_and_never_generated_with(
    servers: LaunchedServers,
    folders: dict[str, Path],
    weights: dict[str, Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_on(servers, folders)
    send(engine, weights, 1)
    write = vllm_update.write_bucket

    def flip(path: Path, named: list[tuple[str, Tensor]]) -> list[TensorMeta]:
        metas = write(path, named)
        if metas[0].name == engine.manifest()[0].name:
            raw = bytearray(path.read_bytes())
            raw[5] ^= 1
            path.write_bytes(raw)
        return metas

    monkeypatch.setattr(vllm_update, "write_bucket", flip)
    with pytest.raises(UpdateError, match=rf"worker 0: 1 of .*{engine.manifest()[0].name}"):
        send(engine, weights, 2)
    assert engine.state == "dirty"
    with pytest.raises(EngineStateError):
        engine.generate(REQUESTS)
    monkeypatch.undo()
    send(engine, weights, 2)
    assert gap(engine, folders["qwen2"]) < 1e-4


def test_a_broken_update_leaves_servers_that_take_the_next(
    servers: LaunchedServers, folders: dict[str, Path], weights: dict[str, Tensor]
) -> None:
    engine = engine_on(servers, folders)
    update = engine.open_update(engine.manifest(), 1)
    first = engine.manifest()[0].name
    update.load([(first, weights[first])])
    update.abort()
    assert engine.state == "dirty"
    send(engine, weights, 2)
    assert gap(engine, folders["qwen2"]) < 1e-4


def test_the_deadline_returns_partial_samples(
    servers: LaunchedServers, folders: dict[str, Path], weights: dict[str, Tensor]
) -> None:
    engine = engine_on(servers, folders)
    send(engine, weights, 1)
    long = [
        Request(f"q{i}", (7, 8, 9), SamplingSpec(120, ignore_eos=True), tuple(range(8)))
        for i in range(16)
    ]
    whole = engine.generate(long)
    begin = time.monotonic()
    engine.generate(long[:1])
    enough = time.monotonic() - begin
    partial = 0
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):  # one alone may fall between two waves of samples
        samples = engine.generate(long, deadline=time.monotonic() + share * enough)
        cut = [s for s in samples if s.finish_reason == "abort"]
        assert cut and len(samples) == 128
        for sample, full in zip(samples, whole, strict=True):
            assert sample.token_ids == full.token_ids[: len(sample.token_ids)]
            assert len(sample.log_probs) == len(sample.token_ids)
        partial += sum(0 < len(s.token_ids) < 120 for s in cut)
    assert partial


def test_a_frozen_server_and_a_killed_one(
    servers: LaunchedServers, folders: dict[str, Path], weights: dict[str, Tensor]
) -> None:
    """Last: it leaves one server dead."""
    engine = engine_on(servers, folders)
    engine._health_timeout = 2.0
    send(engine, weights, 1)
    expected = [s.token_ids for s in engine.generate(REQUESTS)]
    pid = servers.pids[1]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert [s.token_ids for s in engine.generate(REQUESTS)] == expected
        assert list(engine.lost) == [servers.urls[1]]
    finally:
        os.kill(pid, signal.SIGCONT)
    send(engine, weights, 2)  # it is back, with the new weights
    assert not engine.lost

    os.killpg(pid, signal.SIGKILL)
    assert [s.token_ids for s in engine.generate(REQUESTS)] == expected
    send(engine, weights, 3)
    assert list(engine.lost) == [servers.urls[1]]
    assert {s.version for s in engine.generate(REQUESTS)} == {3}
    with pytest.raises(EngineStateError, match="ended with code -9"):
        servers.check()
