# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Weights of a vLLM engine: streamed in layer by layer, and the fingerprints of what came."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from megacurl.rollout import vllm_compat
from megacurl.rollout.digest import tensor_digest
from megacurl.rollout.errors import UpdateError
from megacurl.rollout.types import TensorMeta
from megacurl.rollout.update import WeightUpdate

_HEAD, _EMBEDDING = "lm_head.weight", "embed_tokens.weight"
_INDEX = "model.safetensors.index.json"


class StreamedUpdate(WeightUpdate):
    """Hands tensors to vLLM, which gathers those of a layer, then makes its kernel format of them.

    So no more than a bucket and the layers that it cuts lie in memory beside the model.

    Args:
        runner: vLLM's model runner.
        tied: whether the head shares the embedding.
        digests: receives name -> digest of every tensor when they are live.
        arguments: those of ``WeightUpdate``.
    """

    def __init__(self, runner: Any, tied: bool, digests: dict[str, int], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._runner, self._tied = runner, tied
        self._live_digests = digests
        self._digests: dict[str, int] = {}
        vllm_compat.begin_reload(runner)

    @torch.no_grad()
    def _write(self, named_tensors: Sequence[tuple[str, Tensor]]) -> None:
        self._runner.model.load_weights(self._copies(named_tensors))

    def _copies(self, named_tensors: Sequence[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in named_tensors:
            self._digests[name] = tensor_digest(tensor)
            # vLLM keeps what it gets until the layer is complete, and the caller reuses its buffer.
            yield from with_tied_head(self._tied, name, tensor.detach().clone())

    @torch.no_grad()
    def _finish(self) -> None:
        left = vllm_compat.unloaded_layers(self._runner)
        if left:
            raise UpdateError(
                f"vLLM took all tensors, but none of them for {', '.join(left)}: its names for this"
                " model differ from those of transformers; use another rollout engine"
            )
        vllm_compat.finish_reload(self._runner)
        if self._runner.device.type == "cuda":
            torch.cuda.synchronize(self._runner.device)
        self._live_digests.update(self._digests)

    def _rollback(self) -> None:
        vllm_compat.cancel_reload(self._runner)


def with_tied_head(tied: bool, name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The tensor, and where head and embedding are ``tied`` the embedding as head too.

    On a CPU vLLM's head has a packed copy of its own, which would silently stay old.
    """
    yield name, tensor
    if tied and name.endswith(_EMBEDDING):
        yield _HEAD, tensor


def folder_digests(folder: Path, manifest: Sequence[TensorMeta]) -> dict[str, int]:
    """Digest of each tensor of ``manifest`` as a model folder holds it, cast to its dtype there."""
    index = folder / _INDEX
    if index.is_file():
        places = json.loads(index.read_text("utf-8"))["weight_map"]
    else:
        places = {meta.name: "model.safetensors" for meta in manifest}
    digests = {}
    for file in sorted({places[meta.name] for meta in manifest}):
        with safe_open(folder / file, framework="pt") as tensors:
            for meta in manifest:
                if places[meta.name] == file:
                    tensor = tensors.get_tensor(meta.name).to(getattr(torch, meta.dtype))
                    digests[meta.name] = tensor_digest(tensor)
    return digests
