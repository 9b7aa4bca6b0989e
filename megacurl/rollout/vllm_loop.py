# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One ``generate`` call on a vLLM engine: a vLLM request for every sample, stepped to the end."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from megacurl.rollout.control import GenerateControl
from megacurl.rollout.errors import RequestError
from megacurl.rollout.types import Request, Sample
from megacurl.rollout.validation import stop_tokens
from megacurl.rollout.vllm_compat import DRAW

_LEAST_TEMPERATURE = 0.01
"""vLLM raises a lower one, other than 0, to this."""


def check_temperatures(requests: Sequence[Request]) -> None:
    """Refuse a temperature that vLLM would replace by another."""
    for request in requests:
        if 0.0 < request.sampling.temperature < _LEAST_TEMPERATURE:
            raise RequestError(
                f"request {request.id!r}: temperature {request.sampling.temperature!r}; vLLM takes"
                f" 0 (greedy) or at least {_LEAST_TEMPERATURE}"
            )


def generate(
    engine: Any,
    requests: Sequence[Request],
    control: GenerateControl,
    eos_token_ids: Collection[int],
    version: int,
) -> list[Sample]:
    """Generate until all samples are finished or ``control`` says stop.

    Args:
        engine: a vLLM ``LLMEngine`` without other requests; afterwards it has none again.
        requests: checked requests.
        control: stop conditions.
        eos_token_ids: the model's end-of-sequence tokens.
        version: version of the weights, written into the samples.

    Returns:
        Samples ordered by request, then seed; unfinished ones with finish_reason "abort".
    """
    samples: list[Sample] = []
    running: dict[str, Sample] = {}
    finished = 0
    try:
        for request in requests:
            prompt = {"prompt_token_ids": [*request.prompt_ids, *request.prefix_ids]}
            for index, seed in enumerate(request.seeds):
                name = str(len(samples))
                samples.append(Sample(request.id, index, version=version))
                running[name] = samples[-1]
                engine.add_request(name, prompt, _parameters(request, seed, eos_token_ids))
        while running and not control.must_stop():
            done = [o.request_id for o in engine.step() if _accept(running[o.request_id], o)]
            # A sample that ended in an error is one of which vLLM would go on.
            engine.abort_request([n for n in done if running[n].finish_reason == "error"])
            for name in done:
                del running[name]
            if done:
                finished += len(done)
                control.report(finished, len(samples))
    finally:
        # Also when a callback raised: the next call must find the engine empty.
        engine.abort_request(list(running))
    return samples


def _parameters(request: Request, seed: int, eos_token_ids: Collection[int]) -> Any:
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    sampling, before = request.sampling, len(request.prefix_ids)
    return SamplingParams(
        max_tokens=sampling.max_tokens - before,
        min_tokens=max(sampling.min_tokens - before, 0),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        # The end-of-sequence tokens go with the others; vLLM's own idea of them is not asked.
        stop_token_ids=sorted(stop_tokens(request, eos_token_ids)),
        ignore_eos=True,
        logprobs=0,  # of the sampled token alone
        flat_logprobs=True,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
        extra_args={DRAW: (seed, before)},
    )


def _accept(sample: Sample, output: Any) -> bool:
    """Take the new tokens; True when the sample is finished."""
    (new,) = output.outputs
    for token, log_prob in zip(new.token_ids, new.logprobs.logprobs, strict=True):
        if not math.isfinite(log_prob):
            sample.finish_reason = "error"
            return True
        sample.token_ids.append(token)
        sample.log_probs.append(log_prob)
    if output.finished:
        sample.finish_reason = new.finish_reason
    return bool(output.finished)
