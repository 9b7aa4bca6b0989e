# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""vLLM in the trainer's process, on a CPU or on one GPU a rank."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from megacurl.rollout import vllm_compat, vllm_loop
from megacurl.rollout.control import GenerateControl
from megacurl.rollout.digest import combine_digests
from megacurl.rollout.errors import EngineStateError
from megacurl.rollout.hf_model import bounded_length, config_manifest
from megacurl.rollout.in_process import InProcessEngine
from megacurl.rollout.types import Capabilities, MemoryTag, Request, Sample, TensorMeta
from megacurl.rollout.update import WeightUpdate
from megacurl.rollout.vllm_weights import StreamedUpdate, folder_digests

vllm_compat.require_vllm()

_MB = 1 << 20
_DEFAULT_CACHE_MB = 4096
_BLOCK = 128
"""Tokens of a KV cache block on a CPU; a GPU has smaller ones."""


class VLLMEngine(InProcessEngine):
    """Generates with vLLM, one engine a rank; starting it is collective over the trainer's ranks.

    Args:
        model: folder in Hugging Face format.
        load_weights: False starts with random weights: ``generate`` is refused until the first
            update has brought the trainer's.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu" or "cuda:<index>".
        max_model_len: prompt plus generated tokens; default: the model's own limit.
        max_batch_size: samples decoded at once.
        kv_cache_mb: memory of the KV cache; default: room for ``max_batch_size`` samples of
            ``max_model_len``, but no more than 4096 unless a single one needs it.
        eos_token_ids: default: those of generation_config.json, else of config.json.
        initial_version: version of weights loaded from the folder.

    Raises:
        ValueError: a setting that vLLM could not work with; names it.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        load_weights: bool = True,
        dtype: str = "float32",
        device: str | torch.device = "cpu",
        max_model_len: int | None = None,
        max_batch_size: int = 256,
        kv_cache_mb: int | None = None,
        eos_token_ids: Sequence[int] | None = None,
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
        if max_batch_size < 1:
            raise ValueError(f"max_batch_size must be >= 1, not {max_batch_size!r}")
        self._folder = Path(model)
        self._max_batch_size = max_batch_size
        self._max_model_len = bounded_length(
            max_model_len, int(self._config.max_position_embeddings), "its positions"
        )
        self._head_size = _head_size(self._config, self._device)
        self._kv_cache_mb = self._cache_size(kv_cache_mb)
        self._manifest: list[TensorMeta] = []
        self._digests: dict[str, int] = {}
        self._vllm: Any = None

    @property
    def capabilities(self) -> Capabilities:
        """See ``RolloutEngine.capabilities``. vLLM scores prompts at temperature 1 only."""
        return Capabilities(
            partial_rollouts=True,
            scoring=False,
            releases_memory=self._device.type != "cpu",
            concurrent=False,
            transports=frozenset({"tensor"}),
        )

    def manifest(self) -> list[TensorMeta]:
        """Parameters by their Hugging Face name; a tied head is not listed."""
        self._require_alive("manifest")
        return list(self._manifest)

    def digest(self) -> str:
        """Fingerprint of the tensors of the last committed update, or else of the folder.

        vLLM keeps weights in a format of its own and can't give them back, so this proves what
        arrived, not what is computed with. That is shown by the log-probs: see the metric
        ``sync/logprob_gap``.
        """
        self._require_alive("digest")
        if not self._digests and self._load_weights:
            self._digests = folder_digests(self._folder, self._manifest)
        return combine_digests(self._digests)

    def _start(self) -> int:
        self._manifest = config_manifest(self._config, self._dtype)
        self._vllm = vllm_compat.start_engine(self._arguments())
        return self._first_version

    def _arguments(self) -> dict[str, Any]:
        cuda = self._device.type == "cuda"
        return {
            "model": str(self._folder),
            "skip_tokenizer_init": True,
            "generation_config": "vllm",  # else the model's file overrides sampling settings
            "load_format": "auto" if self._load_weights else "dummy",
            "dtype": str(self._dtype).removeprefix("torch."),
            "max_model_len": self._max_model_len,
            "max_num_seqs": self._max_batch_size,
            "kv_cache_memory_bytes": self._kv_cache_mb * _MB,
            # The check at the start is against this share of the whole GPU, most of which the
            # trainer has; the size of the cache is given.
            "gpu_memory_utilization": 0.01,
            "logprobs_mode": "processed_logprobs",
            "distributed_executor_backend": _executor(self._device),
            "enforce_eager": not cuda,
            "enable_sleep_mode": cuda,
            "async_scheduling": False,
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
            "seed": 0,
        }

    def _shutdown(self) -> None:
        vllm_compat.stop_engine(self._vllm)
        self._vllm = None

    def _alive(self) -> bool:
        return self._vllm is not None

    @torch.inference_mode()
    def _generate(self, requests: Sequence[Request], control: GenerateControl) -> list[Sample]:
        vllm_loop.check_temperatures(requests)
        return vllm_loop.generate(self._vllm, requests, control, self._eos, self.weight_version)

    def _drop_caches(self) -> None:
        # Keys and values of the prefix cache were computed with the weights of their time.
        if not self._vllm.reset_prefix_cache():
            raise EngineStateError("vLLM did not drop its prefix cache: a request is still running")

    def _release(self, tags: set[MemoryTag]) -> None:
        if "weights" in tags:
            self._dirty = True  # vLLM does not keep them; they are sent anew in any case
        if self._device.type == "cpu" or not tags:
            return
        if self._vllm.is_sleeping():
            self._vllm.wake_up()
        if "weights" in tags:
            self._vllm.sleep(level=2)
        else:
            self._vllm.sleep(level=0)
            self._vllm.release_kv_cache_memory()

    def _reacquire(self, tags: set[MemoryTag]) -> None:
        if self._device.type == "cpu" or not tags:
            return
        # Without its weights vLLM has no cache either, whether or not that was asked for.
        kept = set() if "kv_cache" in self._released else {"kv_cache"}
        self._vllm.wake_up(tags=sorted(tags | kept))

    def _begin_update(self, manifest: Sequence[TensorMeta], version: int) -> WeightUpdate:
        return StreamedUpdate(
            vllm_compat.model_runner(self._vllm),
            bool(self._config.tie_word_embeddings),
            self._digests,
            manifest,
            version,
            lambda committed: self._update_closed(version, committed),
        )

    def _cache_size(self, wanted_mb: int | None) -> int:
        """Megabytes of the KV cache."""
        config = self._config
        kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        token = 2 * config.num_hidden_layers * kv_heads * self._head_size * self._dtype.itemsize
        blocks = -(-self._max_model_len // _BLOCK)
        sample = blocks * _BLOCK * token
        least = -(-sample // _MB) + 1  # one block stays unused
        if wanted_mb is None:
            return max(least, min(-(-sample * self._max_batch_size // _MB) + 1, _DEFAULT_CACHE_MB))
        if wanted_mb < least:
            raise ValueError(
                f"kv_cache_mb={wanted_mb} does not hold one sample of"
                f" max_model_len={self._max_model_len} tokens; give at least {least}"
            )
        return wanted_mb


def _head_size(config: Any, device: torch.device) -> int:
    """Elements of an attention head; refuses what vLLM's kernels lack."""
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if device.type == "cpu":
        sizes = vllm_compat.cpu_head_sizes()
        if size not in sizes:
            raise ValueError(
                f"the model's attention heads have head_dim {size}; vLLM on a CPU has kernels for"
                f" {', '.join(map(str, sizes))}; use the transformers engine"
            )
    return int(size)


def _executor(device: torch.device) -> str:
    """How vLLM finds its device: the first one, or that of LOCAL_RANK under torchrun."""
    if device.type == "cpu":
        return "uni"
    under_torchrun = dist.is_initialized() and "LOCAL_RANK" in os.environ
    place = int(os.environ["LOCAL_RANK"]) if under_torchrun else 0
    if (device.index or 0) != place:
        raise EngineStateError(f"start: vLLM would take cuda:{place} here, not {device}")
    return "external_launcher" if under_torchrun else "uni"


ENGINE = VLLMEngine
