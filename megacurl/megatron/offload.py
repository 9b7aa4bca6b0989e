# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Memory that is on the device only while somebody uses it, and in host memory otherwise.

Megatron keeps many views into its flat buffers, and optimizers hold references to tensors. So
storages are emptied and filled again in place: every tensor and view of them stays valid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, UntypedStorage


class Offloadable:
    """Tensors that leave the device together; does nothing unless ``enabled``."""

    def __init__(
        self, tensors: Callable[[], Iterable[Tensor]], *, enabled: bool, keep_content: bool = True
    ) -> None:
        """
        Args:
            tensors: asked each time they leave, for optimizers make their state late. Tensors in
                host memory of a GPU machine, and those that share a storage, may be among them.
            enabled: False leaves everything where it is.
            keep_content: False for what is written before it is read, such as gradient buffers:
                it costs no host memory and comes back with any content.
        """
        self._tensors = tensors
        self._enabled, self._keep_content = enabled, keep_content
        self._out: list[tuple[UntypedStorage, int]] = []
        self._host: dict[int, Tensor] = {}
        self._users = 0

    @property
    def is_out(self) -> bool:
        """Whether the tensors are empty at present."""
        return bool(self._out)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Have the tensors on the device inside; may be nested."""
        self._bring_back()
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self.move_out()

    def move_out(self) -> None:
        """Free the device memory, unless it is in use."""
        if not self._enabled or self._users or self._out:
            return
        for storage in _device_storages(self._tensors()):
            size = storage.nbytes()
            if self._keep_content:
                self._host_copy(storage).copy_(_bytes_of(storage))
            storage.resize_(0)
            self._out.append((storage, size))
        current = {storage._cdata for storage, _ in self._out}
        self._host = {key: copy for key, copy in self._host.items() if key in current}
        if any(storage.device.type == "cuda" for storage, _ in self._out):
            torch.cuda.empty_cache()

    def _bring_back(self) -> None:
        for storage, size in self._out:
            storage.resize_(size)
            if self._keep_content:
                _bytes_of(storage).copy_(self._host_copy(storage), non_blocking=True)
        self._out = []

    def _host_copy(self, storage: UntypedStorage) -> Tensor:
        """Its place in host memory, pinned for a GPU; made once, for pinning is slow."""
        key, size = storage._cdata, storage.nbytes()
        if key not in self._host or self._host[key].numel() != size:
            pin = storage.device.type == "cuda"
            self._host[key] = torch.empty(size, dtype=torch.uint8, pin_memory=pin)
        return self._host[key]


def storage_key(tensor: Tensor) -> int:
    """Identifies the storage behind ``tensor``, also while it is empty."""
    key: int = tensor.untyped_storage()._cdata
    return key


def _bytes_of(storage: UntypedStorage) -> Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _device_storages(tensors: Iterable[Tensor]) -> list[UntypedStorage]:
    """The storages behind ``tensors``, each once. Beside a GPU's, those in host memory (AdamW's
    step counters) stay where they are; without a GPU all of them count."""
    found = {storage_key(t): t.untyped_storage() for t in tensors if t.numel()}
    on_gpu = [s for s in found.values() if s.device.type == "cuda"]
    return on_gpu or list(found.values())
