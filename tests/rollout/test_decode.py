# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What engines generate, against the model's own full forward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from megacurl.rollout import Request, RolloutEngine, Sample, SamplingSpec
from megacurl.rollout.sampling import counter_uniform
from megacurl.rollout.transformers_engine import TransformersEngine

EOS = 3
PROMPTS = [(5, 9, 11), (17,), (40, 2, 60, 7, 7, 81, 13), (5, 9, 11, 30, 31), (90, 91)]
MODELS = ["qwen2", "qwen3", "llama", "llama_bias"]


def request(
    index: int, max_tokens: int = 20, seeds: tuple[int, ...] = (0,), **sampling: Any
) -> Request:
    spec = SamplingSpec(max_tokens, **{"ignore_eos": True, **sampling})
    return Request(f"r{index}", PROMPTS[index], spec, seeds)


def full_logits(model: PreTrainedModel, prompt: tuple[int, ...], tokens: list[int]) -> Tensor:
    """Logits that predict each of ``tokens``, from one forward without a cache."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *tokens]])).logits[0]
    return logits[len(prompt) - 1 : -1]


def assert_log_probs(model: PreTrainedModel, sample: Sample, temperature: float = 1.0) -> None:
    prompt = PROMPTS[int(sample.request_id[1:])]
    log_probs = (full_logits(model, prompt, sample.token_ids) / temperature).log_softmax(-1)
    expected = log_probs.gather(1, torch.tensor(sample.token_ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(sample.log_probs), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", [*MODELS, "gpt2"])
def test_log_probs_equal_the_full_forward(
    name: str, fused: bool, models: dict[str, PreTrainedModel], start_engine: Any
) -> None:
    engine = start_engine(name, fused=fused)
    assert engine.decoder_name == ("FusedDecoder" if fused and name != "gpt2" else "HFDecoder")
    samples = engine.generate([request(i, seeds=(1, 2, 3)) for i in range(len(PROMPTS))])
    assert len(samples) == 15
    for sample in samples:
        assert len(sample.token_ids) == 20 and sample.finish_reason == "length"
        assert_log_probs(models[name], sample)
    assert len({tuple(sample.token_ids) for sample in samples}) == 15


def test_sampling_is_the_documented_rule(
    models: dict[str, PreTrainedModel], any_engine: RolloutEngine
) -> None:
    """Token t is the inverse of the cumulative distribution at uniform(seed, t)."""
    sample = any_engine.generate([request(2, seeds=(77,), temperature=1.3)])[0]
    probs = (full_logits(models["qwen2"], PROMPTS[2], sample.token_ids) / 1.3).double().softmax(-1)
    uniforms = counter_uniform(torch.full((20,), 77), torch.arange(20))
    expected = torch.searchsorted(probs.cumsum(-1), uniforms[:, None])[:, 0]
    assert sample.token_ids == expected.tolist()


@pytest.mark.parametrize("name", MODELS)
def test_greedy_in_a_batch_equals_alone_and_the_model(
    name: str, models: dict[str, PreTrainedModel], start_engine: Any
) -> None:
    engine = start_engine(name)
    batch = engine.generate([request(i, temperature=0.0) for i in range(len(PROMPTS))])
    for index, sample in enumerate(batch):
        alone = engine.generate([request(index, temperature=0.0)])[0]
        assert alone.token_ids == sample.token_ids
        logits = full_logits(models[name], PROMPTS[index], sample.token_ids)
        assert sample.token_ids == logits.argmax(-1).tolist()
        assert_log_probs(models[name], sample)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"max_batch_size": 1},
        {"max_batch_size": 4},
        {"max_batch_size": 7, "max_prefill_tokens": 1},
        {"max_batch_tokens": 60},
    ],
)
def test_samples_do_not_depend_on_the_batch(
    limits: dict[str, int], any_engine: RolloutEngine, start_any: Any, engine_name: str
) -> None:
    if engine_name != "transformers" and set(limits) - {"max_batch_size"}:
        pytest.skip("a limit of the transformers engine")
    requests = [
        request(
            i,
            8 + 3 * i,
            seeds=tuple(range(9 * i, 9 * i + 6)),
            temperature=(1.0, 0.0, 0.6, 1.3, 1.0)[i],
            top_p=(1.0, 1.0, 1.0, 0.8, 1.0)[i],
            top_k=(0, 0, 0, 0, 5)[i],
        )
        for i in range(5)
    ]
    alone = {
        (r.id, seed): any_engine.generate([Request(r.id, r.prompt_ids, r.sampling, (seed,))])[0]
        for r in requests
        for seed in r.seeds
    }
    engine = start_any(**limits) if limits else any_engine
    for order in (requests, requests[::-1]):
        samples = engine.generate(order)
        asked = [(r.id, index) for r in order for index in range(6)]
        assert [(s.request_id, s.index) for s in samples] == asked
        seeds = {r.id: r.seeds for r in order}
        for sample in samples:
            expected = alone[sample.request_id, seeds[sample.request_id][sample.index]]
            assert sample.token_ids == expected.token_ids
            assert sample.log_probs == pytest.approx(expected.log_probs, abs=1e-5)
            assert sample.finish_reason == expected.finish_reason == "length"


def test_equal_seeds_give_equal_samples_and_equal_prompts_share_a_prefill(
    qwen2: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths: list[int] = []
    prefill = qwen2._decoder.prefill
    monkeypatch.setattr(
        qwen2._decoder, "prefill", lambda ids: widths.append(len(ids)) or prefill(ids)
    )
    spec = SamplingSpec(10, ignore_eos=True)
    twins = [Request(name, PROMPTS[2], spec, (4, 4, 5)) for name in ("a", "b")]
    first, again, other, *second = (sample.token_ids for sample in qwen2.generate(twins))
    assert first == again != other
    assert list(second) == [first, again, other]
    assert widths == [1]


@pytest.mark.parametrize("cut", [1, 7, 19])
def test_prefix_continues_the_same_stream(cut: int, any_engine: RolloutEngine) -> None:
    full = any_engine.generate([request(3, seeds=(11,), top_k=40, min_tokens=5)])[0]
    base = request(3, seeds=(11,), top_k=40, min_tokens=5)
    prefix = tuple(full.token_ids[:cut])
    rest = any_engine.generate([Request("r3", base.prompt_ids, base.sampling, (11,), prefix)])[0]
    assert rest.token_ids == full.token_ids[cut:]
    assert rest.log_probs == pytest.approx(full.log_probs[cut:], abs=1e-5)
    assert rest.finish_reason == "length"


def test_stop_tokens_and_eos(any_engine: RolloutEngine) -> None:
    seeds = tuple(range(60))
    free = any_engine.generate([request(0, 30, seeds)])
    stopped = any_engine.generate([request(0, 30, seeds, ignore_eos=False, stop_token_ids=(8, 50))])
    own_only = any_engine.generate([request(0, 30, seeds, stop_token_ids=(8, 50))])
    for samples, stops in ((stopped, {EOS, 8, 50}), (own_only, {8, 50})):
        reasons = set()
        for sample, whole in zip(samples, free, strict=True):
            ends = [i for i, token in enumerate(whole.token_ids) if token in stops]
            length = ends[0] + 1 if ends else 30
            assert sample.token_ids == whole.token_ids[:length]
            assert sample.finish_reason == ("stop" if ends else "length")
            reasons.add(sample.finish_reason)
        assert reasons == {"stop", "length"}


def test_eos_ids_can_be_overridden(start_any: Any) -> None:
    engine = start_any(eos_token_ids=(8, 50))
    assert engine.eos_token_ids == (8, 50)
    samples = engine.generate([request(0, 30, tuple(range(40)), ignore_eos=False)])
    ends = {s.token_ids[-1] for s in samples if s.finish_reason == "stop"}
    assert ends == {8, 50}


def test_min_tokens_bans_stop_tokens_and_renormalises(
    models: dict[str, PreTrainedModel], any_engine: RolloutEngine
) -> None:
    stops = tuple(range(0, 97, 2))
    samples = any_engine.generate(
        [request(1, 12, tuple(range(20)), min_tokens=6, stop_token_ids=stops)]
    )
    for sample in samples:
        assert len(sample.token_ids) > 6
        assert not set(sample.token_ids[:6]) & set(stops)
        logits = full_logits(models["qwen2"], PROMPTS[1], sample.token_ids)
        logits[:6, list(stops)] = -torch.inf
        expected = logits.log_softmax(-1).gather(1, torch.tensor(sample.token_ids)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(sample.log_probs), expected, atol=1e-5, rtol=0)
    assert any(s.finish_reason == "stop" and len(s.token_ids) == 7 for s in samples)


def test_log_probs_are_at_the_sampling_temperature(
    models: dict[str, PreTrainedModel], any_engine: RolloutEngine
) -> None:
    requests = [request(0, seeds=(1, 2), temperature=0.7), request(2, seeds=(3,), temperature=1.5)]
    cool, cool2, warm = any_engine.generate(requests)
    assert_log_probs(models["qwen2"], cool, 0.7)
    assert_log_probs(models["qwen2"], cool2, 0.7)
    assert_log_probs(models["qwen2"], warm, 1.5)


def test_top_k_and_top_p_rows_beside_plain_ones(
    models: dict[str, PreTrainedModel], any_engine: RolloutEngine
) -> None:
    plain, narrow = any_engine.generate([request(0, seeds=(5,)), request(2, seeds=(6,), top_k=3)])
    assert_log_probs(models["qwen2"], plain)
    logits = full_logits(models["qwen2"], PROMPTS[2], narrow.token_ids)
    top = logits.topk(3, dim=-1)
    for t, token in enumerate(narrow.token_ids):
        kept = top.indices[t].tolist()
        assert token in kept
        expected = top.values[t].log_softmax(-1)[kept.index(token)]
        assert narrow.log_probs[t] == pytest.approx(expected.item(), abs=1e-5)


def test_first_token_frequencies(
    models: dict[str, PreTrainedModel], any_engine: RolloutEngine
) -> None:
    samples = any_engine.generate([request(4, 1, tuple(range(4000)))])
    counts = torch.bincount(torch.tensor([s.token_ids[0] for s in samples]), minlength=97)
    probs = full_logits(models["qwen2"], PROMPTS[4], [0])[0].softmax(-1)
    likely = probs * 4000 >= 5
    assert likely.sum() > 20 and counts[probs * 4000 < 1e-3].sum() == 0
    statistic = float(((counts - probs * 4000) ** 2 / (probs * 4000))[likely].sum())
    freedom = int(likely.sum())
    assert abs(statistic - freedom) < 4 * (2 * freedom) ** 0.5


def test_bfloat16_stays_near_its_own_forward(start_engine: Any) -> None:
    for fused in (True, False):
        engine = start_engine("llama", dtype="bfloat16", fused=fused)
        sample = engine.generate([request(2, 30, (1,))])[0]
        score = engine.score([PROMPTS[2]], [sample.token_ids])[0]
        gaps = [abs(a - b) for a, b in zip(sample.log_probs, score, strict=True)]
        assert sum(gaps) / len(gaps) < 0.05
        assert {meta.dtype for meta in engine.manifest()} == {"bfloat16"}


@pytest.mark.parametrize("rows", [5, 256])
def test_a_broken_weight_ends_only_the_rows_it_reaches(
    rows: int, qwen2: TransformersEngine, start_engine: Any
) -> None:
    requests = [request(i, 25, tuple(range(10 * i, 10 * i + 8))) for i in range(5)]
    good = qwen2.generate(requests)
    broken = start_engine("qwen2", max_batch_size=rows)
    # Token 60 is in prompt 2; when another row samples it, that row breaks at the next step.
    with torch.no_grad():
        broken._model.base_model.embed_tokens.weight = torch.nn.Parameter(
            broken._model.base_model.embed_tokens.weight.clone(), requires_grad=False
        )
        broken._model.base_model.embed_tokens.weight[60] = torch.nan
    broken._decoder._embedding = broken._model.base_model.embed_tokens.weight
    outcomes = set()
    for sample, expected in zip(broken.generate(requests), good, strict=True):
        tokens = expected.token_ids
        if sample.request_id == "r2":
            alive = 0
        else:
            alive = tokens.index(60) + 1 if 60 in tokens[:-1] else 25
        assert sample.token_ids == tokens[:alive]
        assert sample.finish_reason == ("length" if alive == 25 else "error")
        outcomes.add((sample.request_id == "r2", sample.finish_reason))
    assert outcomes == {(True, "error"), (False, "error"), (False, "length")}


def test_long_generation_grows_the_cache(
    models: dict[str, PreTrainedModel], qwen2: TransformersEngine
) -> None:
    samples = qwen2.generate([request(0, 125, (1, 2)), request(2, 3, (4,))])
    assert [len(s.token_ids) for s in samples] == [125, 125, 3]
    for sample in samples:
        assert_log_probs(models["qwen2"], sample)


def test_no_requests_no_samples(any_engine: RolloutEngine) -> None:
    assert any_engine.generate([]) == []


def test_process_random_state_is_untouched(start_engine: Any) -> None:
    before = torch.random.get_rng_state()
    engine = start_engine("llama")
    engine.generate([request(0, seeds=(1,))])
    config_only = TransformersEngine(engine._config, load_weights=False)
    config_only.start()
    assert torch.equal(torch.random.get_rng_state(), before)
