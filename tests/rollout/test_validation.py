# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Bad requests are refused before the first token, with the request and the value named."""

from __future__ import annotations

import math
from typing import Any

import pytest

from megacurl.rollout import Request, RequestError, RolloutEngine, SamplingSpec
from megacurl.rollout.transformers_engine import TransformersEngine

GOOD = Request("good", (5, 6), SamplingSpec(4), (0,))


def bad(**fields: Any) -> Request:
    base: dict[str, Any] = {
        "id": "q7",
        "prompt_ids": (5, 6),
        "sampling": SamplingSpec(4),
        "seeds": (0,),
    }
    return Request(**{**base, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt_ids": ()}, r"'q7': prompt_ids is empty"),
        ({"prompt_ids": (5, 97)}, r"'q7': prompt_ids\[1\] is 97; .*\[0, 97\)"),
        ({"prompt_ids": (-1,)}, r"prompt_ids\[0\] is -1"),
        ({"prompt_ids": (5, 2.0)}, r"prompt_ids\[1\] is 2.0"),
        ({"prompt_ids": (True,)}, r"prompt_ids\[0\] is True"),
        ({"prefix_ids": (5, 1000)}, r"prefix_ids\[1\] is 1000"),
        ({"prefix_ids": (5, 6, 7, 8)}, r"prefix_ids has 4 tokens.*max_tokens=4"),
        ({"prefix_ids": (5, 3)}, r"ends with the stop token 3"),
        ({"prompt_ids": (5,) * 125}, r"125 prompt tokens \+ max_tokens=4 = 129 .*=128"),
        ({"seeds": ()}, r"seeds is empty"),
        ({"seeds": (2**63,)}, r"seed 9223372036854775808"),
        ({"seeds": (1, -1)}, r"seed -1"),
        ({"seeds": (0.5,)}, r"seed 0.5"),
        ({"sampling": SamplingSpec(4, stop_token_ids=(99,))}, r"stop_token_ids\[0\] is 99"),
        ({"id": "good"}, r"'good': id occurs twice"),
    ],
)
def test_bad_request(fields: dict[str, Any], message: str, any_engine: RolloutEngine) -> None:
    generated = any_engine.stats.generated_tokens
    with pytest.raises(RequestError, match=message):
        any_engine.generate([GOOD, bad(**fields)])
    assert any_engine.stats.generated_tokens == generated
    assert len(any_engine.generate([GOOD])) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": 0}, "max_tokens .* not 0"),
        ({"max_tokens": 2.5}, "max_tokens .* not 2.5"),
        ({"temperature": -0.1}, "temperature .* not -0.1"),
        ({"temperature": math.nan}, "temperature .* not nan"),
        ({"temperature": math.inf}, "temperature .* not inf"),
        ({"top_p": 0.0}, "top_p .* not 0.0"),
        ({"top_p": 1.1}, "top_p .* not 1.1"),
        ({"top_k": -1}, "top_k .* not -1"),
        ({"min_tokens": 6}, r"min_tokens .*max_tokens=5\], not 6"),
    ],
)
def test_bad_sampling(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        SamplingSpec(**{"max_tokens": 5, **fields})


def test_a_request_larger_than_the_cache_budget(start_engine: Any) -> None:
    engine = start_engine(max_batch_tokens=20)
    with pytest.raises(RequestError, match=r"'q7': 22 tokens .* max_batch_tokens=20"):
        engine.generate([bad(sampling=SamplingSpec(20))])
    assert len(engine.generate([bad(sampling=SamplingSpec(18))])) == 1


@pytest.mark.parametrize(
    ("prompts", "completions", "temperature", "message"),
    [
        ([(5,)], [], 1.0, "1 prompts but 0 completions"),
        ([()], [(5,)], 1.0, r"prompt_ids\[0\] is empty"),
        ([(5,), (97,)], [(5,), (5,)], 1.0, r"prompt_ids\[1\]\[0\] is 97"),
        ([(5,)], [(5, -3)], 1.0, r"completion_ids\[0\]\[1\] is -3"),
        ([(5,)], [(5,)], 0.0, "temperature must be > 0, not 0.0"),
        ([(5,) * 100], [(5,) * 29], 1.0, "sequence 0 has 129 tokens"),
    ],
)
def test_bad_score(
    prompts: Any, completions: Any, temperature: float, message: str, qwen2: TransformersEngine
) -> None:
    with pytest.raises(RequestError, match=message):
        qwen2.score(prompts, completions, temperature)


@pytest.mark.parametrize("max_prefill_tokens", [1 << 14, 8])
def test_scores_equal_generation(max_prefill_tokens: int, start_engine: Any) -> None:
    engine = start_engine("llama", max_prefill_tokens=max_prefill_tokens)
    prompts = [(5, 6), (7,), (1, 2, 4, 8, 16)]
    requests = [
        Request(str(i), prompt, SamplingSpec(3 + 5 * i, 0.8, ignore_eos=True), (i,))
        for i, prompt in enumerate(prompts)
    ]
    samples = engine.generate(requests)
    scores = engine.score([*prompts, (9,)], [*(s.token_ids for s in samples), ()], 0.8)
    assert scores[3] == []
    for sample, score in zip(samples, scores, strict=False):
        assert score == pytest.approx(sample.log_probs, abs=1e-5)
