# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The words of the rollout contract: what is asked of an engine and what comes back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import torch

from megacurl.rollout.errors import RequestError

FinishReason = Literal["stop", "length", "abort", "error"]
MemoryTag = Literal["weights", "kv_cache"]
MEMORY_TAGS: tuple[MemoryTag, ...] = ("weights", "kv_cache")
NO_WEIGHTS = -1
"""``weight_version`` of an engine that holds no weights yet."""


@dataclass(frozen=True, slots=True)
class SamplingSpec:
    """How to sample one request.

    Args:
        max_tokens: generated tokens at most, a partial rollout's ``prefix_ids`` included.
        temperature: logits are divided by it; 0 means greedy.
        top_p: nucleus mass in (0, 1], applied after ``top_k``; 1 is off.
        top_k: keep the k likeliest tokens; 0 is off.
        min_tokens: stop tokens can't be sampled before this many generated tokens.
        stop_token_ids: tokens that end a sample, besides the model's end-of-sequence tokens.
        ignore_eos: the model's end-of-sequence tokens do not end a sample.

    Raises:
        RequestError: a field is out of range; names the field and its value.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_tokens: int = 0
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        if not _is_int(self.max_tokens) or self.max_tokens < 1:
            raise RequestError(f"max_tokens must be an int >= 1, not {self.max_tokens!r}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0.0):
            raise RequestError(
                f"temperature must be finite and >= 0 (0 is greedy), not {self.temperature!r}"
            )
        if not 0.0 < self.top_p <= 1.0:
            raise RequestError(f"top_p must be in (0, 1] (1 is off), not {self.top_p!r}")
        if not _is_int(self.top_k) or self.top_k < 0:
            raise RequestError(f"top_k must be an int >= 0 (0 is off), not {self.top_k!r}")
        if not _is_int(self.min_tokens) or not 0 <= self.min_tokens <= self.max_tokens:
            raise RequestError(
                f"min_tokens must be an int in [0, max_tokens={self.max_tokens}],"
                f" not {self.min_tokens!r}"
            )


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt, to be sampled once for each seed.

    ``prefix_ids`` continues a partial rollout: they are the tokens generated so far, and sample i
    goes on exactly where a run with seed i stopped, so prefix + continuation equals the run that
    was never interrupted (as long as the weights are the same).
    """

    id: str
    prompt_ids: tuple[int, ...]
    sampling: SamplingSpec
    seeds: tuple[int, ...]
    prefix_ids: tuple[int, ...] = ()

    @property
    def num_samples(self) -> int:
        """n, the number of samples asked for."""
        return len(self.seeds)


@dataclass(slots=True)
class Sample:
    """One generated continuation.

    ``token_ids`` are the *new* tokens (without ``prefix_ids``), the stop token included.
    ``log_probs[t]`` is the behaviour log-probability of ``token_ids[t]`` under the distribution it
    was drawn from: after temperature, min_tokens, top-k and top-p ("processed"). For greedy
    requests it is log softmax of the unscaled logits. "error" means the model gave a non-finite
    distribution; the tokens before it are kept.
    """

    request_id: str
    index: int
    token_ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finish_reason: FinishReason = "abort"
    version: int = NO_WEIGHTS


@dataclass(frozen=True, slots=True)
class TensorMeta:
    """A tensor of a weight update: Hugging Face name, shape, and dtype by name ("bfloat16")."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, name: str, tensor: torch.Tensor) -> TensorMeta:
        """Describe ``tensor``."""
        return cls(name, tuple(tensor.shape), dtype_name(tensor.dtype))


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do, so that a launcher can refuse a plan before anything is loaded.

    Args:
        partial_rollouts: an aborted generate returns the tokens it had.
        scoring: ``score`` is available.
        releases_memory: ``release_memory`` really gives device memory back.
        concurrent: generates in other processes, so the trainer may work at the same time.
        transports: ways weights can reach it; "tensor" is a direct call in the same process.
        log_probs: meaning of ``Sample.log_probs``.
    """

    partial_rollouts: bool
    scoring: bool
    releases_memory: bool
    concurrent: bool
    transports: frozenset[str]
    log_probs: Literal["processed", "raw"] = "processed"


def dtype_name(dtype: torch.dtype) -> str:
    """``torch.bfloat16`` -> ``"bfloat16"``."""
    return str(dtype).removeprefix("torch.")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
