# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""After an update vLLM computes what an engine started from the new checkpoint computes.

Its layers hold weights in a format that can't be read back, so tokens and log-probs are compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen2Config

from megacurl.rollout import (
    Request,
    RolloutEngine,
    SamplingSpec,
    TensorMeta,
    UpdateError,
    create_engine,
)

from .conftest import NEEDS_VLLM

pytestmark = NEEDS_VLLM
# Longer than a block of the prefix cache (128 tokens), so that stale blocks would be used.
REQUESTS = [
    Request(str(i), (5 + i, *(range(1, 80)), *range(1, 80), 7), SamplingSpec(12, T), (i, 9))
    for i, T in enumerate((0.0, 1.0, 0.7))
]
Tensors = list[tuple[str, Tensor]]


def _config(kind: str) -> PretrainedConfig:
    shape: dict[str, Any] = {
        "vocab_size": 97,
        "hidden_size": 128,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "initializer_range": 0.08,
        "eos_token_id": 3,
        "tie_word_embeddings": kind.endswith("-tied"),
    }
    return Qwen2Config(**shape) if kind.startswith("qwen2") else LlamaConfig(**shape)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    """checkpoints(kind): two checkpoints of a model with random weights, before and after."""
    made: dict[str, list[Path]] = {}

    def of_kind(kind: str) -> list[Path]:
        if kind not in made:
            root = tmp_path_factory.mktemp("checkpoints")
            for seed in (0, 1):
                with torch.random.fork_rng():
                    torch.manual_seed(seed)
                    model = AutoModelForCausalLM.from_config(_config(kind))
                    with torch.no_grad():
                        for parameter in model.parameters():
                            if parameter.ndim == 1:
                                parameter.add_(0.1 * torch.randn_like(parameter))
                model.save_pretrained(root / str(seed))
            made[kind] = [root / "0", root / "1"]
        return made[kind]

    return of_kind


@pytest.fixture
def start() -> Any:
    """Start a vLLM engine; it is shut down after the test."""
    started: list[RolloutEngine] = []

    def start_one(folder: Path, **settings: Any) -> RolloutEngine:
        engine = create_engine("vllm", model=folder, kv_cache_mb=16, **settings)
        started.append(engine)
        engine.start()
        return engine

    yield start_one
    for engine in started:
        engine.shutdown()


def weights(folder: Path, dtype: str = "float32") -> Tensors:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    return [(name, parameter.detach()) for name, parameter in model.named_parameters()]


def send(engine: RolloutEngine, tensors: Tensors, version: int, at_once: int = 2) -> None:
    engine.pause()
    with engine.open_update([TensorMeta.of(*pair) for pair in tensors], version) as update:
        for begin in range(0, len(tensors), at_once):
            update.load(tensors[begin : begin + at_once])
        update.commit()
    engine.resume()


def outcome(engine: RolloutEngine) -> list[tuple[list[int], list[float]]]:
    return [(s.token_ids, s.log_probs) for s in engine.generate(REQUESTS)]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["qwen2-tied", "qwen2-untied", "llama-untied"])
def test_updated_engine_is_bit_for_bit_a_fresh_one(
    kind: str, dtype: str, checkpoints: Any, start: Any
) -> None:
    old, new = checkpoints(kind)
    fresh = start(new, dtype=dtype)
    expected = outcome(fresh)
    engine = start(old, dtype=dtype)
    before = outcome(engine)
    send(engine, weights(new, dtype), 1)
    assert before != expected == outcome(engine)
    assert engine.digest() == fresh.digest() and engine.weight_version == 1
    send(engine, weights(old, dtype)[::-1], 2, at_once=100)
    assert outcome(engine) == before
    empty = start(old, dtype=dtype, load_weights=False)
    assert empty.state == "no_weights"
    send(empty, weights(new, dtype), 0, at_once=1)
    assert outcome(empty) == expected


def test_a_head_that_is_not_sent_is_noticed(checkpoints: Any, start: Any) -> None:
    """vLLM on a CPU would go on with the old head: it is a packed copy of the embedding."""
    old, new = checkpoints("qwen2-tied")
    engine = start(old)
    engine._config.tie_word_embeddings = False  # so that the embedding is not sent as head too
    with pytest.raises(UpdateError, match="none of them for lm_head"):
        send(engine, weights(new), 1)
    assert engine.state == "dirty"


def test_prefix_cache_would_be_stale(
    checkpoints: Any, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What dropping the cache is for: without it, blocks of the old weights are used."""
    old, new = checkpoints("llama-untied")
    expected = outcome(start(new))
    engine = start(old)
    before = outcome(engine)
    monkeypatch.setattr(engine, "_drop_caches", lambda: None)
    send(engine, weights(new), 1)
    assert outcome(engine) != expected
    monkeypatch.undo()
    send(engine, weights(old), 2)
    assert outcome(engine) == before


@pytest.mark.parametrize("kind", ["qwen2-tied", "llama-untied"])
def test_a_full_update_cures_one_that_broke_off(kind: str, checkpoints: Any, start: Any) -> None:
    """Broken off between layers and in the middle of a fused one (q without k and v)."""
    old, new = checkpoints(kind)
    expected = outcome(start(new))
    engine = start(old)
    before = outcome(engine)
    tensors = weights(new)
    for version, arrived in enumerate((0, 1, 2, 7, len(tensors) - 1)):
        for _ in range(2):
            update = engine.open_update([TensorMeta.of(*pair) for pair in tensors], 1)
            update.load(tensors[:arrived])
            update.abort()
            assert engine.state == "dirty"
        send(engine, tensors, 2 * version)
        assert outcome(engine) == expected
        send(engine, weights(old), 2 * version + 1)
        assert outcome(engine) == before


def test_vllm_failing_in_the_middle(
    checkpoints: Any, start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = checkpoints("llama-untied")
    engine = start(old)
    before = outcome(engine)
    model = engine._vllm.model_executor.driver_worker.worker.model_runner.model
    load = model.load_weights

    def fail(pairs: Any) -> None:
        load([next(iter(pairs))])
        raise MemoryError("no room")

    monkeypatch.setattr(model, "load_weights", fail)
    with pytest.raises(MemoryError, match="no room"):
        send(engine, weights(new), 1)
    monkeypatch.undo()
    assert engine.state == "dirty" and engine.weight_version == 0
    send(engine, weights(old), 1)
    assert outcome(engine) == before


def test_memory_beside_the_model_is_a_bucket(checkpoints: Any, start: Any) -> None:
    """vLLM holds what it got only until the layer is complete."""
    import weakref

    old, new = checkpoints("llama-untied")
    engine = start(old)
    tensors = weights(new)
    copies: list[Any] = []
    model = engine._vllm.model_executor.driver_worker.worker.model_runner.model
    load = model.load_weights

    def watch(pairs: Any) -> Any:
        return load((name, copies.append(weakref.ref(tensor)) or tensor) for name, tensor in pairs)

    model.load_weights = watch
    alive = []
    with engine.open_update([TensorMeta.of(*pair) for pair in tensors], 1) as update:
        for pair in tensors:
            update.load([pair])
            alive.append(sum(copy() is not None for copy in copies))
        update.commit()
    # At most q, k and v at a time, of some twenty tensors.
    assert max(alive) <= 3 and len(copies) == len(tensors)


def test_digest_of_a_folder_in_parts(checkpoints: Any, start: Any, tmp_path: Path) -> None:
    old, _ = checkpoints("llama-untied")
    AutoModelForCausalLM.from_pretrained(old).save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    shutil.copy(old / "config.json", tmp_path)
    assert start(tmp_path).digest() == start(old).digest()
