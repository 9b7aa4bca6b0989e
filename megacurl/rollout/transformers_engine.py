# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The embedded engine: a transformers model in the trainer's own process, on a CPU or one GPU."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedModel

from megacurl.rollout.admission import BatchLimits
from megacurl.rollout.control import GenerateControl
from megacurl.rollout.decode import DecodeLoop
from megacurl.rollout.decoder import HFDecoder
from megacurl.rollout.decoder_check import build_decoder
from megacurl.rollout.digest import combine_digests, tensor_digest
from megacurl.rollout.errors import RequestError
from megacurl.rollout.hf_model import (
    attention_window,
    bounded_length,
    build_model,
    named_weights,
)
from megacurl.rollout.in_process import InProcessEngine
from megacurl.rollout.scoring import score_completions
from megacurl.rollout.types import Capabilities, MemoryTag, Request, Sample, TensorMeta
from megacurl.rollout.update import WeightUpdate

logger = logging.getLogger(__name__)


class TransformersEngine(InProcessEngine):
    """Generates with a Hugging Face causal language model.

    Args:
        model: folder in Hugging Face format, or a config (then weights come by an update).
        load_weights: False builds the model from its config alone: ``generate`` is refused until
            the first update has brought the weights.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu" or "cuda:<index>".
        max_model_len: prompt plus generated tokens; default: the model's own limit.
        max_batch_size: samples decoded at once.
        max_batch_tokens: samples at once x their longest final length; bounds the KV cache.
        max_prefill_tokens: tokens of one prefill or scoring forward.
        eos_token_ids: default: those of generation_config.json, else of config.json.
        fused: use the fused decode step where the model allows it.
        initial_version: version of weights loaded from the folder.
    """

    def __init__(
        self,
        model: str | Path | PretrainedConfig,
        *,
        load_weights: bool = True,
        dtype: str = "float32",
        device: str | torch.device = "cpu",
        max_model_len: int | None = None,
        max_batch_size: int = 256,
        max_batch_tokens: int = 1 << 18,
        max_prefill_tokens: int = 1 << 14,
        eos_token_ids: Sequence[int] | None = None,
        fused: bool = True,
        initial_version: int = 0,
    ) -> None:
        super().__init__(
            model,
            load_weights=load_weights,
            dtype=dtype,
            device=device,
            eos_token_ids=eos_token_ids,
            initial_version=initial_version,
        )
        self._source = model
        self._limits = BatchLimits(max_batch_size, max_batch_tokens, max_prefill_tokens)
        self._fused = fused
        self._max_model_len = _model_length(self._config, max_model_len)
        self._model: PreTrainedModel | None = None
        self._decoder: HFDecoder | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See ``RolloutEngine.capabilities``."""
        return Capabilities(
            partial_rollouts=True,
            scoring=True,
            releases_memory=self._device.type != "cpu",
            concurrent=False,
            transports=frozenset({"tensor"}),
        )

    @property
    def decoder_name(self) -> str:
        """Which decode step is in use, "FusedDecoder" or "HFDecoder"; "" before ``start``."""
        return "" if self._decoder is None else type(self._decoder).__name__

    def manifest(self) -> list[TensorMeta]:
        """Parameters by their Hugging Face name; a tied head is not listed."""
        return [TensorMeta.of(name, tensor) for name, tensor in named_weights(self._live_model())]

    def digest(self) -> str:
        """See ``RolloutEngine.digest``."""
        tensors = named_weights(self._live_model())
        return combine_digests({name: tensor_digest(tensor) for name, tensor in tensors})

    def _start(self) -> int:
        self._model = build_model(
            self._source,
            self._config,
            load_weights=self._load_weights,
            dtype=self._dtype,
            device=self._device,
        )
        self._decoder = build_decoder(self._model, self._fused)
        return self._first_version

    def _shutdown(self) -> None:
        self._decoder = None
        self._model = None
        self._free_device_cache()

    def _alive(self) -> bool:
        return self._model is not None

    def _generate(self, requests: Sequence[Request], control: GenerateControl) -> list[Sample]:
        for request in requests:
            length = len(request.prompt_ids) + request.sampling.max_tokens
            if length > self._limits.max_tokens:
                raise RequestError(
                    f"request {request.id!r}: {length} tokens (prompt + max_tokens) exceed"
                    f" max_batch_tokens={self._limits.max_tokens}; raise it or shorten the request"
                )
        loop = DecodeLoop(self._live_decoder(), self._limits, self._eos, self.weight_version)
        return loop.run(requests, control)

    def _score(
        self,
        prompt_ids: Sequence[Sequence[int]],
        completion_ids: Sequence[Sequence[int]],
        temperature: float,
    ) -> list[list[float]]:
        return score_completions(
            self._live_model(),
            prompt_ids,
            completion_ids,
            temperature,
            self._limits.max_prefill_tokens,
        )

    def _drop_caches(self) -> None:
        # The KV cache lives inside one generate call, so there is nothing that could be stale.
        pass

    def _release(self, tags: set[MemoryTag]) -> None:
        if "weights" in tags and self._device.type != "cpu":
            self._decoder = None
            self._live_model().to("cpu")
        self._free_device_cache()

    def _reacquire(self, tags: set[MemoryTag]) -> None:
        if "weights" in tags and self._device.type != "cpu":
            model = self._live_model()
            model.to(self._device)
            self._decoder = build_decoder(model, self._fused)

    def _begin_update(self, manifest: Sequence[TensorMeta], version: int) -> WeightUpdate:
        return _CopyUpdate(
            dict(named_weights(self._live_model())),
            manifest,
            version,
            lambda committed: self._update_closed(version, committed),
        )

    def _free_device_cache(self) -> None:
        if self._device.type == "cuda":
            with torch.cuda.device(self._device):
                torch.cuda.empty_cache()

    def _live_model(self) -> PreTrainedModel:
        self._require_alive("this call")
        assert self._model is not None
        return self._model

    def _live_decoder(self) -> HFDecoder:
        assert self._decoder is not None
        return self._decoder


class _CopyUpdate(WeightUpdate):
    """Copies tensors into the live parameters."""

    def __init__(self, live: dict[str, Tensor], *args: Any) -> None:
        super().__init__(*args)
        self._live = live

    @torch.no_grad()
    def _write(self, named_tensors: Sequence[tuple[str, Tensor]]) -> None:
        for name, tensor in named_tensors:
            self._live[name].copy_(tensor)

    def _finish(self) -> None:
        # A copy from another device may still be running, and the caller may reuse its buffer.
        for device in {tensor.device for tensor in self._live.values()}:
            if device.type == "cuda":
                torch.cuda.synchronize(device)

    def _rollback(self) -> None:
        pass


def _model_length(config: Any, wanted: int | None) -> int:
    """The allowed sequence length, within the model's positions and attention window."""
    limit = int(config.max_position_embeddings)
    window = attention_window(config)
    if window is not None:
        # Beyond its window a layer forgets, which the slot cache does not imitate.
        limit = min(limit, window)
    return bounded_length(
        wanted, limit, f"positions {config.max_position_embeddings}, attention window {window}"
    )


ENGINE = TransformersEngine
