# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The rollout contract in the words of vLLM's server: its token-in, token-out route.

Written for vLLM 0.32 with ``--enable-scale-out``. What an answer must hold is checked here, so that
a half answer is an error of that server and not a wrong number in training.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

from megacurl.rollout.servers.endpoint import ServerUnavailable
from megacurl.rollout.types import FinishReason, Request, Sample
from megacurl.rollout.validation import stop_tokens

GENERATE = "/inference/v1/generate"
ABORT = "/inference/v1/abort_requests"
_SEED_BITS = 31
"""vLLM's kernel for a CPU looks at no more of a seed."""
_REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "abort": "abort"}


def generate_body(
    request: Request, seed: int, eos_token_ids: Collection[int], name: str
) -> dict[str, Any]:
    """The JSON that asks for one sample."""
    sampling, before = request.sampling, len(request.prefix_ids)
    return {
        "request_id": name,
        "token_ids": [*request.prompt_ids, *request.prefix_ids],
        "sampling_params": {
            "max_tokens": sampling.max_tokens - before,
            "min_tokens": max(sampling.min_tokens - before, 0),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            # The end-of-sequence tokens go with the others; vLLM's own idea of them isn't asked.
            "stop_token_ids": sorted(stop_tokens(request, eos_token_ids)),
            "ignore_eos": True,
            "logprobs": 0,  # of the sampled token alone
            "detokenize": False,
            "seed": server_seed(seed, before),
        },
    }


def server_seed(seed: int, tokens_before: int) -> int:
    """vLLM's seed of a sample that goes on after ``tokens_before`` tokens.

    A server draws from a generator of the request, which can't be moved to where an interrupted
    sample stopped: the continuation is another one of the same distribution.
    """
    text = f"{seed}:{tokens_before}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> (64 - _SEED_BITS)


def abort_body(names: Collection[str]) -> dict[str, Any]:
    """The JSON that makes the server answer the requests ``names`` with what it has."""
    return {"request_ids": [f"generate-tokens-{name}" for name in names]}


def read_sample(answer: Any, request: Request, index: int, url: str) -> tuple[Sample, str]:
    """The sample that ``answer`` holds, and the weight version it was made with.

    Raises ServerUnavailable for an answer that is not of the promised form.
    """
    try:
        (choice,) = answer["choices"]
        tokens = [int(token) for token in choice["token_ids"]]
        content = (choice["logprobs"] or {"content": []})["content"]
        log_probs = [float(entry["logprob"]) for entry in content]
        sampled = [entry["token_id"] for entry in content]
        reason = _REASONS[choice["finish_reason"]]
        versions = {str(span["version"]) for span in choice["weight_versions"] or ()}
    except (KeyError, TypeError, ValueError) as error:
        raise ServerUnavailable(
            f"{url}{GENERATE}: the answer lacks what MegaCURL reads ({type(error).__name__}:"
            f" {error}); it is written for vLLM 0.32"
        ) from error
    if sampled != tokens:
        raise ServerUnavailable(
            f"{url}{GENERATE}: {len(tokens)} tokens with log-probs of {len(sampled)} others"
        )
    if tokens and len(versions) != 1:
        raise ServerUnavailable(f"{url}{GENERATE}: a sample of weight versions {sorted(versions)}")
    finite = next((i for i, x in enumerate(log_probs) if not math.isfinite(x)), None)
    if finite is not None:
        tokens, log_probs, reason = tokens[:finite], log_probs[:finite], "error"
    sample = Sample(request.id, index, tokens, log_probs, reason)
    return sample, versions.pop() if versions else ""
