# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""vLLM in process: the same samples as the embedded engine, and clear refusals.

What every engine promises is tested with the others; here is what only vLLM could get wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from megacurl.rollout import (
    EngineStateError,
    Request,
    RequestError,
    RolloutEngine,
    SamplingSpec,
    TensorMeta,
    create_engine,
)
from megacurl.rollout.transformers_engine import TransformersEngine

from .conftest import NEEDS_VLLM, make_config

pytestmark = NEEDS_VLLM
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7},
    {"temperature": 0.0},
    {"top_p": 0.8},
    {"top_k": 5},
    {"temperature": 1.4, "top_p": 0.9, "top_k": 20, "min_tokens": 8, "ignore_eos": False},
]
REQUESTS = [
    Request(
        f"r{i}",
        tuple(range(7, 9 + 4 * i)),
        SamplingSpec(25, **{"ignore_eos": True, **sampling}),
        tuple(range(100 * i, 100 * i + 6)),
    )
    for i, sampling in enumerate(SETTINGS)
]


@pytest.fixture(scope="module")
def engine_name() -> str:
    return "vllm"


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "llama", "llama_bias"])
def test_token_for_token_the_embedded_engine(name: str, start_any: Any, start_engine: Any) -> None:
    ours, theirs = start_any(name), start_engine(name)
    assert ours.eos_token_ids == theirs.eos_token_ids
    assert ours.manifest() == theirs.manifest()
    assert ours.digest() == theirs.digest()
    for sample, expected in zip(ours.generate(REQUESTS), theirs.generate(REQUESTS), strict=True):
        assert sample.token_ids == expected.token_ids
        assert sample.log_probs == pytest.approx(expected.log_probs, abs=1e-3)
        assert sample.finish_reason == expected.finish_reason


def test_bfloat16_log_probs_stay_near_the_embedded_engine(
    start_any: Any, folders: dict[str, Path]
) -> None:
    samples = start_any("llama", dtype="bfloat16").generate(REQUESTS[:2])
    scorer = TransformersEngine(folders["llama"], dtype="bfloat16")
    scorer.start()
    for request, rows in zip(REQUESTS[:2], (samples[:6], samples[6:]), strict=True):
        scores = scorer.score(
            [request.prompt_ids] * 6, [s.token_ids for s in rows], request.sampling.temperature
        )
        gaps = [
            abs(a - b)
            for sample, score in zip(rows, scores, strict=True)
            for a, b in zip(sample.log_probs, score, strict=True)
        ]
        assert sum(gaps) / len(gaps) < 0.05


def test_long_prompts_in_chunks_and_a_full_cache(start_any: Any, start_engine: Any) -> None:
    """More tokens than fit: vLLM preempts requests and computes them again, with equal results."""
    requests = [
        Request(f"r{i}", tuple(range(1, 60 + i)), SamplingSpec(60, ignore_eos=True), (i, 50 + i))
        for i in range(6)
    ]
    tight = start_any("llama", kv_cache_mb=2)
    samples = tight.generate(requests)
    expected = start_engine("llama").generate(requests)
    assert [s.token_ids for s in samples] == [s.token_ids for s in expected]


def test_a_broken_weight_ends_the_sample(start_any: Any, models: dict[str, Any]) -> None:
    engine = start_any("llama", load_weights=False)
    tensors = [(name, p.detach().clone()) for name, p in models["llama"].named_parameters()]
    dict(tensors)["model.embed_tokens.weight"][60] = torch.nan
    update_all(engine, tensors, 0)
    good = Request("good", (5, 6), SamplingSpec(6, ignore_eos=True, top_k=1), (0,))
    bad = Request("bad", (5, 60), SamplingSpec(6, ignore_eos=True), (0, 1))
    samples = engine.generate([good, bad])
    assert [s.finish_reason for s in samples] == ["length", "error", "error"]
    assert samples[1].token_ids == samples[2].token_ids == []
    assert [s.finish_reason for s in engine.generate([good])] == ["length"]


def test_released_weights_have_to_be_sent_again(
    start_any: Any, models: dict[str, PreTrainedModel]
) -> None:
    engine = start_any("llama")
    before = [s.token_ids for s in engine.generate(REQUESTS)]
    engine.release_memory(("kv_cache",))
    with pytest.raises(EngineStateError, match=r"'released'.*resume_memory"):
        engine.generate(REQUESTS)
    engine.resume_memory()
    assert [s.token_ids for s in engine.generate(REQUESTS)] == before
    engine.release_memory()
    engine.resume_memory(("weights",))
    tensors = [(name, p.detach()) for name, p in models["llama"].named_parameters()]
    update_all(engine, tensors, 5)
    assert engine.state == "released"
    engine.resume_memory(("kv_cache",))
    assert [s.token_ids for s in engine.generate(REQUESTS)] == before
    engine.release_memory()
    engine.resume_memory()
    with pytest.raises(EngineStateError, match=r"'dirty'.*full update"):
        engine.generate(REQUESTS)


def test_what_vllm_cannot_do_is_refused(start_any: Any) -> None:
    engine = start_any()
    assert not engine.capabilities.scoring
    with pytest.raises(EngineStateError, match=r"score: VLLMEngine can't score"):
        engine.score([(5,)], [(6,)])
    # vLLM would raise the temperature to 0.01.
    request = Request("q7", (5, 6), SamplingSpec(4, temperature=0.001), (0,))
    with pytest.raises(RequestError, match=r"'q7': temperature 0\.001; vLLM takes"):
        engine.generate([request])


def test_refused_before_anything_is_loaded(folders: dict[str, Path], tmp_path: Path) -> None:
    config = make_config("llama")
    config.num_attention_heads, config.head_dim = 8, 16
    config.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"head_dim 16; vLLM on a CPU has kernels for 32, 64, .*"):
        create_engine("vllm", model=tmp_path, load_weights=False)
    folder = folders["qwen2"]
    for settings, message in (
        ({"kv_cache_mb": 1}, r"kv_cache_mb=1 does not hold one sample of max_model_len=128"),
        ({"max_model_len": 129}, r"max_model_len must be in \[1, 128\].*not 129"),
        ({"max_batch_size": 0}, "max_batch_size must be >= 1, not 0"),
        ({"dtype": "float64"}, "'float64'"),
        ({"fused": True}, r"the vllm engine has no setting 'fused'.*its settings: model,"),
        ({"max_modle_len": 5}, "did you mean 'max_model_len'"),
    ):
        with pytest.raises(ValueError, match=message):
            create_engine("vllm", model=folder, **settings)
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        create_engine("vllm", model=tmp_path / "nothing")


def test_default_cache_holds_a_full_batch_within_its_limit(folders: dict[str, Path]) -> None:
    # 2 layers x 2 heads x 32 x (keys, values) x 4 bytes = 1 KiB a token, 128 KiB a sample.
    sizes = {
        batch: create_engine("vllm", model=folders["qwen2"], max_batch_size=batch)._kv_cache_mb
        for batch in (1, 80, 1 << 20)
    }
    assert sizes == {1: 2, 80: 11, 1 << 20: 4096}


def update_all(engine: RolloutEngine, tensors: list[tuple[str, Tensor]], version: int) -> None:
    """A full update in one bucket."""
    with engine.open_update([TensorMeta.of(*pair) for pair in tensors], version) as update:
        update.load(tensors)
        update.commit()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_sleeps_and_takes_weights(folders: dict[str, Path]) -> None:
    engine = create_engine("vllm", model=folders["llama"], device="cuda:0", kv_cache_mb=256)
    engine.start()
    reference = TransformersEngine(folders["llama"])
    reference.start()
    tensors = [(n, p.detach().cuda()) for n, p in reference._live_model().named_parameters()]
    free = torch.cuda.mem_get_info()[0]
    engine.release_memory()
    assert torch.cuda.mem_get_info()[0] - free > 200 << 20
    engine.resume_memory(("weights",))
    update_all(engine, tensors, 1)
    engine.resume_memory(("kv_cache",))
    assert engine.digest() == reference.digest()
    samples = engine.generate(REQUESTS[:1])
    scores = reference.score([REQUESTS[0].prompt_ids] * 6, [s.token_ids for s in samples])
    for sample, score in zip(samples, scores, strict=True):
        assert sample.log_probs == pytest.approx(score, abs=1e-2)
    engine.shutdown()
