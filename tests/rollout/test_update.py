# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The weight update protocol: checked up front, all or dirty, and provable afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from megacurl.rollout import (
    EngineStateError,
    ManifestError,
    Request,
    RolloutEngine,
    SamplingSpec,
    TensorMeta,
    UpdateError,
    combine_digests,
    tensor_digest,
)

from .conftest import make_model

GREEDY = [
    Request(str(i), prompt, SamplingSpec(16, 0.0, ignore_eos=True), (0,))
    for i, prompt in enumerate([(5, 9, 11), (40, 2, 60, 7), (90,)])
]


def named(model: PreTrainedModel, dtype: torch.dtype = torch.float32) -> list[tuple[str, Tensor]]:
    return [(name, p.detach().to(dtype)) for name, p in model.named_parameters()]


def manifest_of(tensors: list[tuple[str, Tensor]]) -> list[TensorMeta]:
    return [TensorMeta.of(name, tensor) for name, tensor in tensors]


def tokens(engine: RolloutEngine) -> list[list[int]]:
    return [sample.token_ids for sample in engine.generate(GREEDY)]


def send(engine: RolloutEngine, tensors: list[tuple[str, Tensor]], version: int) -> None:
    with engine.open_update(manifest_of(tensors), version) as update:
        for start in range(0, len(tensors), 3):
            update.load(tensors[start : start + 3])
        update.commit()


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "llama", "llama_bias", "gpt2"])
@pytest.mark.parametrize("fused", [True, False])
def test_updated_engine_equals_a_fresh_one(name: str, fused: bool, start_engine: Any) -> None:
    model = make_model(name, seed=5)
    engine = start_engine(name, fused=fused)
    before = tokens(engine)
    send(engine, named(model), version=7)
    assert engine.weight_version == 7 and engine.state == "ready"
    samples = engine.generate(GREEDY)
    assert [s.version for s in samples] == [7] * 3
    assert [s.token_ids for s in samples] != before
    for request, sample in zip(GREEDY, samples, strict=True):
        ids = torch.tensor([[*request.prompt_ids, *sample.token_ids]])
        with torch.no_grad():
            logits = model(ids).logits[0, len(request.prompt_ids) - 1 : -1]
        assert sample.token_ids == logits.argmax(-1).tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_digest_proves_the_weights(dtype: torch.dtype, start_any: Any) -> None:
    engine = start_any(load_weights=False, dtype=str(dtype).removeprefix("torch."))
    tensors = named(make_model("qwen2", seed=5), dtype)
    expected = combine_digests({name: tensor_digest(tensor) for name, tensor in tensors})
    assert engine.digest() != expected
    send(engine, tensors, 0)
    assert engine.digest() == expected


def test_manifest_lists_a_tied_head_once(
    models: dict[str, PreTrainedModel], start_any: Any
) -> None:
    tied = {meta.name for meta in start_any("qwen2", load_weights=False).manifest()}
    untied = {meta.name for meta in start_any("llama", load_weights=False).manifest()}
    assert "lm_head.weight" not in tied and "model.embed_tokens.weight" in tied
    assert "lm_head.weight" in untied
    assert tied == {name for name, _ in models["qwen2"].named_parameters()}


def test_no_weights_no_generation(start_any: Any) -> None:
    engine = start_any(load_weights=False)
    assert engine.weight_version == -1 and engine.state == "no_weights"
    with pytest.raises(EngineStateError, match=r"'no_weights'.*open_update"):
        engine.generate(GREEDY)
    if engine.capabilities.scoring:
        with pytest.raises(EngineStateError, match="no_weights"):
            engine.score([(5,)], [(6,)])
    send(engine, named(make_model("qwen2")), 3)
    assert len(tokens(engine)) == 3


def test_wrong_manifest_lists_every_difference(any_engine: RolloutEngine) -> None:
    wanted = any_engine.manifest()
    offered = [meta for meta in wanted if "norm" not in meta.name]
    offered[0] = replace(offered[0], shape=(98, 128))
    offered[1] = replace(offered[1], dtype="bfloat16")
    offered += [TensorMeta("lm_head.weight", (97, 128), "float32"), offered[2]]
    before = any_engine.digest()
    with pytest.raises(ManifestError) as caught:
        any_engine.open_update(offered, 1)
    message = str(caught.value)
    assert "missing (5): " in message and "model.norm.weight" in message
    assert "unexpected (1): lm_head.weight" in message
    assert f"listed twice (1): {offered[2].name}" in message
    assert f"{offered[0].name} (engine (97, 128), offered (98, 128))" in message
    assert f"{offered[1].name} (engine float32, offered bfloat16)" in message
    # Nothing happened: not even dirty.
    assert any_engine.state == "ready" and any_engine.digest() == before


def test_dirty_from_open_to_commit(start_any: Any) -> None:
    engine = start_any()
    tensors = named(make_model("qwen2", seed=5))
    update = engine.open_update(manifest_of(tensors), 1)
    with pytest.raises(EngineStateError, match=r"'dirty'.*full update"):
        engine.generate(GREEDY)
    assert engine.weight_version == 0
    with pytest.raises(EngineStateError, match="update to version 1 is still open"):
        engine.open_update(manifest_of(tensors), 2)
    update.load(tensors)
    assert engine.state == "dirty"
    update.commit()
    assert engine.state == "ready" and engine.weight_version == 1
    with pytest.raises(UpdateError, match="closed"):
        update.load(tensors[:1])
    with pytest.raises(UpdateError, match="closed"):
        update.commit()
    update.abort()
    assert engine.state == "ready"


def test_abort_and_forgotten_commit_stay_dirty(start_any: Any) -> None:
    engine = start_any()
    tensors = named(make_model("qwen2", seed=5))
    engine.open_update(manifest_of(tensors), 1).abort()
    assert engine.state == "dirty"
    with engine.open_update(manifest_of(tensors), 1) as update:
        update.load(tensors)
    assert engine.state == "dirty" and engine.weight_version == 0
    with (
        pytest.raises(RuntimeError, match="trainer died"),
        engine.open_update(manifest_of(tensors), 1) as update,
    ):
        raise RuntimeError("trainer died")
    assert engine.state == "dirty"
    send(engine, tensors, 1)
    assert engine.state == "ready" and engine.weight_version == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda t: [t[0], t[0]], "embed_tokens.weight arrived twice"),
        (lambda t: [("lm_head.weight", t[0][1])], "lm_head.weight is not in the manifest"),
        (lambda t: [(t[0][0], t[0][1][:5])], r"float32\(5, 128\), but .* float32\(97, 128\)"),
        (lambda t: [(t[0][0], t[0][1].bfloat16())], r"bfloat16\(97, 128\), but"),
    ],
)
def test_bad_bucket_writes_nothing_and_leaves_dirty(
    fault: Any, message: str, start_any: Any
) -> None:
    engine = start_any()
    before = engine.digest()
    tensors = named(make_model("qwen2", seed=5))
    update = engine.open_update(manifest_of(tensors), 1)
    with pytest.raises(UpdateError, match=message):
        update.load([tensors[1], *fault(tensors)])
    assert engine.state == "dirty" and engine.digest() == before
    with pytest.raises(UpdateError, match="closed"):
        update.load(tensors)
    send(engine, tensors, 1)
    assert engine.state == "ready"


def test_commit_needs_every_tensor_exactly_once(start_any: Any) -> None:
    engine = start_any()
    tensors = named(make_model("qwen2", seed=5))
    update = engine.open_update(manifest_of(tensors), 1)
    update.load(tensors[:-2])
    with pytest.raises(UpdateError, match=f"2 tensors never arrived: {tensors[-2][0]}"):
        update.commit()
    assert engine.state == "dirty" and engine.weight_version == 0
    update = engine.open_update(manifest_of(tensors), 1)
    update.load(tensors[:4])
    with pytest.raises(UpdateError, match="arrived twice"):
        update.load(tensors[3:])
    assert engine.state == "dirty"


def test_buffers_may_be_reused_between_buckets(start_any: Any) -> None:
    tensors = named(make_model("llama", seed=5))
    expected = combine_digests({name: tensor_digest(tensor) for name, tensor in tensors})
    engine = start_any("llama", load_weights=False)
    stage = torch.empty(max(tensor.numel() for _, tensor in tensors))
    with engine.open_update(manifest_of(tensors), 0) as update:
        for name, tensor in reversed(tensors):
            view = stage[: tensor.numel()].view(tensor.shape)
            view.copy_(tensor)
            update.load([(name, view)])
        update.commit()
    assert engine.digest() == expected


def test_version_must_be_a_version(any_engine: RolloutEngine) -> None:
    with pytest.raises(ValueError, match="version must be >= 0, not -1"):
        any_engine.open_update(any_engine.manifest(), -1)
    assert any_engine.state == "ready"


def test_no_update_while_generating(any_engine: RolloutEngine) -> None:
    def update(done: int, total: int) -> None:
        any_engine.open_update(any_engine.manifest(), 1)

    with pytest.raises(EngineStateError, match="generating"):
        any_engine.generate(GREEDY, on_progress=update)
    assert any_engine.state == "ready"
