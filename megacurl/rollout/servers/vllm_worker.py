# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What MegaCURL adds to the workers of a vLLM server, through vLLM's own doors.

``--worker-extension-cls megacurl.rollout.servers.vllm_worker.WorkerExtension`` makes vLLM import
this file in every worker, which registers a weight transfer backend that works without a GPU:

``megacurl_file``: tensors of a bucket lie one behind the other in a file that trainer and server
both see, in ``/dev/shm`` if they are on one machine.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

from megacurl.rollout import vllm_compat
from megacurl.rollout.digest import tensor_digest
from megacurl.rollout.servers.bucket_file import read_bucket
from megacurl.rollout.types import TensorMeta
from megacurl.rollout.vllm_weights import with_tied_head

BACKEND = "megacurl_file"


@dataclass
class FileInit(WeightTransferInitInfo):
    """There is nothing to connect."""


@dataclass
class FileUpdate(WeightTransferUpdateInfo):
    """path: of the bucket's file. tensors: [name, shape, dtype] of each, in their order."""

    path: str
    tensors: list[Any]


class FileTransfer(WeightTransferEngine[FileInit, FileUpdate]):
    """Reads buckets from files; remembers the fingerprint of every tensor that came."""

    init_info_cls = FileInit
    update_info_cls = FileUpdate
    supports_draft_weight_update = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.digests: dict[str, int] = {}
        self.problem: str | None = None
        self._open = False

    def init_transfer_engine(self, init_info: FileInit) -> None:
        """Nothing to do."""

    def start_weight_update(self) -> None:
        """Make room for a full set of weights; what is left of a broken one is cleared away."""
        if self._open:
            vllm_compat.cancel_reload(self)
        self.digests, self.problem, self._open = {}, None, True
        vllm_compat.begin_reload(self)

    @torch.no_grad()
    def receive_weights(self, update_info: FileUpdate) -> None:
        """Take a bucket."""
        metas = [
            TensorMeta(name, tuple(shape), dtype) for name, shape, dtype in update_info.tensors
        ]
        with Path(update_info.path).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # Copies: vLLM keeps tensors until their layer is complete, the file goes away before.
        self.model.load_weights(self._fingerprinted(read_bucket(memory, metas)))

    def _fingerprinted(self, tensors: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        tied = bool(self.model_config.hf_config.tie_word_embeddings)
        for name, tensor in tensors:
            self.digests[name] = tensor_digest(tensor)
            yield from with_tied_head(tied, name, tensor)

    @torch.no_grad()
    def finish_weight_update(self) -> None:
        """The last bucket is there: make the weights live.

        If some are missing the old ones are put back and ``problem`` tells. An error instead would
        leave vLLM waiting for the end of this update for ever.
        """
        left = vllm_compat.unloaded_layers(self)
        if left:
            self.problem = f"no weights came for {', '.join(left)}"
            vllm_compat.cancel_reload(self)
        else:
            vllm_compat.finish_reload(self)
        self._open = False

    def shutdown(self) -> None:
        """Nothing to close."""


if BACKEND not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine(BACKEND, FileTransfer)


class WorkerExtension:
    """Methods that vLLM mixes into its worker, for ``/collective_rpc``."""

    weight_transfer_engine: Any

    def megacurl_digests(self) -> dict[str, Any]:
        """``digests`` (hexadecimal) of the tensors of the last update, and its ``problem``."""
        transfer = self.weight_transfer_engine
        digests = {name: f"{value:016x}" for name, value in transfer.digests.items()}
        return {"digests": digests, "problem": transfer.problem}
