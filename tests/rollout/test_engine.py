# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Life of an engine, the registry, loading, and the start-up check of the decode step."""

from __future__ import annotations

import json
import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import MistralConfig, PreTrainedModel

from megacurl.rollout import (
    EngineStateError,
    Request,
    RolloutEngine,
    SamplingSpec,
    create_engine,
    engine_names,
    register_engine,
)
from megacurl.rollout.decoder import HFDecoder
from megacurl.rollout.decoder_check import build_decoder, decode_error
from megacurl.rollout.fused_decoder import FusedDecoder
from megacurl.rollout.transformers_engine import TransformersEngine

from .conftest import make_config, make_model

REQUESTS = [Request("a", (5, 6), SamplingSpec(5, ignore_eos=True), (1, 2))]


def test_states_of_a_life(folders: dict[str, Path]) -> None:
    engine = TransformersEngine(folders["qwen2"], initial_version=4)
    assert engine.state == "new" and not engine.health()
    for call in (lambda: engine.generate(REQUESTS), engine.manifest, engine.pause):
        with pytest.raises(EngineStateError, match="start"):
            call()
    engine.start()
    assert engine.health() and engine.state == "ready" and engine.weight_version == 4
    with pytest.raises(EngineStateError, match="already started"):
        engine.start()
    engine.pause()
    assert engine.health() and engine.state == "paused"
    engine.resume()
    assert {s.version for s in engine.generate(REQUESTS)} == {4}
    engine.shutdown()
    engine.shutdown()
    assert not engine.health() and engine.state == "closed"
    with pytest.raises(EngineStateError, match="shut down"):
        engine.generate(REQUESTS)
    with pytest.raises(EngineStateError, match="shut down"):
        engine.start()


def test_released_memory_refuses_work_until_it_is_back(start_engine: Any) -> None:
    engine = start_engine()
    tokens = [s.token_ids for s in engine.generate(REQUESTS)]
    engine.release_memory()
    with pytest.raises(EngineStateError, match=r"'released'.*resume_memory"):
        engine.generate(REQUESTS)
    with pytest.raises(EngineStateError, match="weights are released"):
        engine.open_update(engine.manifest(), 1)
    engine.resume_memory(("weights",))
    engine.open_update(engine.manifest(), 1).abort()
    engine.resume_memory(("kv_cache",))
    assert engine.state == "dirty"
    with engine.open_update(engine.manifest(), 1) as update:
        update.load([(n, p.detach().clone()) for n, p in engine._model.named_parameters()])
        update.commit()
    assert [s.token_ids for s in engine.generate(REQUESTS)] == tokens
    with pytest.raises(ValueError, match="unknown memory tags"):
        engine.release_memory(("everything",))  # type: ignore[arg-type]


def test_counters_and_their_state(start_engine: Any) -> None:
    engine = start_engine()
    engine.generate(REQUESTS)
    engine.generate(REQUESTS, should_abort=lambda: True)
    metrics = engine.metrics()
    assert metrics["requests"] == 2 and metrics["samples"] == 4
    assert metrics["generated_tokens"] == 10 and metrics["prompt_tokens"] == 4
    assert metrics["aborted"] == 2 and metrics["truncated"] == 2 and metrics["errors"] == 0
    assert metrics["tokens_per_second"] > 0 and metrics["weight_version"] == 0
    other = start_engine()
    other.load_state_dict(json.loads(json.dumps(engine.state_dict())))
    assert other.metrics() == metrics
    with pytest.raises(ValueError, match="keys"):
        other.load_state_dict({"requests": 1})


def test_registry() -> None:
    assert "transformers" in engine_names()
    assert "engine" not in engine_names()
    with pytest.raises(ValueError, match=r"'transformer' .did you mean 'transformers'"):
        create_engine("transformer")
    with pytest.raises(ValueError, match="exists already"):
        register_engine("transformers", "x.y")


def test_registering_an_engine_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("megacurl.rollout.registry._external", {})
    module = types.ModuleType("my_engines")
    module.ENGINE = TransformersEngine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_engines", module)
    register_engine("mine", "my_engines")
    assert "mine" in engine_names()
    engine = create_engine("mine", model=make_config("qwen2"), load_weights=False)
    assert isinstance(engine, RolloutEngine)
    module.ENGINE = dict  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="ENGINE"):
        create_engine("mine")


def test_loading_refuses_an_incomplete_checkpoint(folders: dict[str, Path], tmp_path: Path) -> None:
    tensors = load_file(folders["llama"] / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text((folders["llama"] / "config.json").read_text())
    with pytest.raises(ValueError, match=r"missing_keys.*lm_head.weight"):
        TransformersEngine(tmp_path).start()


def test_bad_arguments(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        TransformersEngine(tmp_path)
    with pytest.raises(ValueError, match="needs a model folder"):
        TransformersEngine(make_config("qwen2"))
    with pytest.raises(ValueError, match="'float64'"):
        TransformersEngine(folders["qwen2"], dtype="float64")
    with pytest.raises(ValueError, match=r"max_model_len must be in \[1, 128\].*not 129"):
        TransformersEngine(folders["qwen2"], max_model_len=129)
    with pytest.raises(ValueError, match="max_rows must be >= 1, not 0"):
        TransformersEngine(folders["qwen2"], max_batch_size=0)


def test_end_of_sequence_ids_come_from_the_generation_config(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text((folders["qwen2"] / "config.json").read_text())
    assert TransformersEngine(tmp_path, load_weights=False).eos_token_ids == (3,)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [4, 9]}')
    assert TransformersEngine(tmp_path, load_weights=False).eos_token_ids == (4, 9)


def test_attention_windows_bound_the_length() -> None:
    config = MistralConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        sliding_window=40,
    )
    assert TransformersEngine(config, load_weights=False).max_model_len == 40
    with pytest.raises(ValueError, match=r"\[1, 40\]"):
        TransformersEngine(config, load_weights=False, max_model_len=41)
    config.sliding_window = None
    assert TransformersEngine(config, load_weights=False).max_model_len == 128
    hybrid = make_config("qwen2")
    hybrid.layer_types = ["linear_attention", "full_attention"]
    with pytest.raises(ValueError, match=r"linear_attention.*another rollout engine"):
        TransformersEngine(hybrid, load_weights=False)


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "llama", "llama_bias"])
def test_packing_keeps_the_model(name: str, models: dict[str, PreTrainedModel]) -> None:
    model = make_model(name)
    ids = torch.tensor([[5, 6, 7, 8]])
    decoder = build_decoder(model, fused=True)
    assert type(decoder) is FusedDecoder and decode_error(decoder) < 1e-5
    with torch.no_grad():
        assert torch.equal(model(ids).logits, models[name](ids).logits)
    for (key, packed), (_, original) in zip(
        model.state_dict().items(), models[name].state_dict().items(), strict=True
    ):
        assert torch.equal(packed, original), key


def test_a_model_the_fused_step_gets_wrong_falls_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model("llama")
    init = FusedDecoder.__init__

    def wrong(self: Any, model: PreTrainedModel) -> None:
        init(self, model)
        self._scale *= 1.2

    monkeypatch.setattr(FusedDecoder, "__init__", wrong)
    with caplog.at_level(logging.WARNING):
        decoder = build_decoder(model, fused=True)
    assert type(decoder) is HFDecoder
    assert "slower generic one" in caplog.text


def test_a_model_no_step_gets_right_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model("gpt2")
    decode = HFDecoder.decode
    monkeypatch.setattr(
        HFDecoder, "decode", lambda self, ids, pos, cache: decode(self, ids, pos + 1, cache)
    )
    with pytest.raises(ValueError, match="can't run this model"):
        build_decoder(model, fused=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_generates_and_sleeps(folders: dict[str, Path]) -> None:
    engine = TransformersEngine(folders["qwen2"], device="cuda:0")
    engine.start()
    reference = TransformersEngine(folders["qwen2"])
    reference.start()
    samples = engine.generate(REQUESTS)
    scores = reference.score([(5, 6)] * 2, [s.token_ids for s in samples])
    for sample, score in zip(samples, scores, strict=True):
        assert sample.log_probs == pytest.approx(score, abs=1e-3)
    assert engine.digest() == reference.digest()
    engine.release_memory()
    engine.resume_memory()
    assert engine.decoder_name == "FusedDecoder"
    assert [s.token_ids for s in engine.generate(REQUESTS)] == [s.token_ids for s in samples]
