# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Trainer weights into the embedded engine of every rank, proven by version and checksum."""

from __future__ import annotations

import torch
from torch import Tensor

from megacurl.megatron.groups import Grid
from megacurl.models.network import Network
from megacurl.rollout.digest import combine_digests, tensor_digest
from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.types import MemoryTag, TensorMeta, dtype_name
from megacurl.sync.gather import gather_hf_weights, plan_gather

_WEIGHTS: tuple[MemoryTag, ...] = ("weights",)
_KV_CACHE: tuple[MemoryTag, ...] = ("kv_cache",)


class SyncError(RuntimeError):
    """An engine does not hold the trainer's weights; no rank may generate."""


class WeightSync:
    """Sends the policy to this rank's engine; the plan is made once.

    Errors are collected and raised on all ranks together: a rank whose engine failed goes on taking
    part in the gathers, else the others would wait for it.
    """

    def __init__(
        self, network: Network, engine: RolloutEngine, grid: Grid, *, bucket_bytes: int
    ) -> None:
        self.network, self.engine, self.grid = network, engine, grid
        self.plan = plan_gather(network, grid, bucket_bytes)
        self.dtypes = {meta.name: _dtype(meta.dtype) for meta in engine.manifest()}

    def __call__(self, version: int) -> str:
        """Send the present weights as ``version``; collective. Returns their digest.

        An engine that gave its memory back takes it in two parts: room for weights before they
        come, room for the KV cache when the trainer's weights may have left the device again.

        Raises:
            SyncError: on every rank, naming the ranks and what went wrong there.
        """
        self.engine.pause()
        self.engine.resume_memory(_WEIGHTS)
        shared = self.engine.is_client
        leads = not shared or self.grid.rank == 0
        with self.network.weights.in_use():
            digests, problems = self._send_together(version, leads)
            if problems and shared:  # a server may have been in trouble for a moment only
                digests, problems = self._send_together(version, leads)
        self._raise(problems)
        if shared:
            self._raise(self._together(None if leads else self._follow(version)))
        self.engine.resume_memory(_KV_CACHE)
        self.engine.resume()
        return combine_digests(digests)

    def _send_together(self, version: int, leads: bool) -> tuple[dict[str, int], list[str]]:
        """Digests of the tensors, and what went wrong on any rank."""
        digests: dict[str, int] = {}
        return digests, self._together(self._send(version, leads, digests))

    def _follow(self, version: int) -> str | None:
        try:
            self.engine.follow(version)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def _send(self, version: int, leads: bool, digests: dict[str, int]) -> str | None:
        """None, or what went wrong on this rank; ``digests`` receives that of every tensor.

        A rank that does not lead only takes part in gathering the weights.
        """
        problem: str | None = None
        update = None
        try:
            update = self.engine.open_update(self._manifest(), version) if leads else None
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        for bucket in gather_hf_weights(self.network, self.plan, self.grid):
            named = [(name, self._cast(name, tensor)) for name, tensor in bucket]
            digests.update((name, tensor_digest(tensor)) for name, tensor in named)
            if update is None or problem is not None:
                continue
            try:
                update.load(named)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
        if update is None or problem is not None:
            return problem
        try:
            update.commit()
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return self._verify(version, combine_digests(digests))

    def _verify(self, version: int, expected: str) -> str | None:
        if self.engine.weight_version != version:
            return f"the engine reports version {self.engine.weight_version}, not {version}"
        actual = self.engine.digest()
        if actual != expected:
            return f"the engine's weights have checksum {actual}, the trainer sent {expected}"
        return None

    def _manifest(self) -> list[TensorMeta]:
        return [
            TensorMeta(name, shape, dtype_name(self.dtypes.get(name, planned.dtype)))
            for planned in self.plan.parameters
            for name, shape in planned.hf_shapes(self.grid.tp_size)
        ]

    def _cast(self, name: str, tensor: Tensor) -> Tensor:
        return tensor.to(self.dtypes.get(name, tensor.dtype))

    def _together(self, problem: str | None) -> list[str]:
        """The problems of all ranks."""
        found = self.grid.gather_objects(problem)
        return [f"rank {rank}: {text}" for rank, text in enumerate(found) if text is not None]

    @staticmethod
    def _raise(problems: list[str]) -> None:
        if problems:
            raise SyncError("weight sync failed: " + "; ".join(problems))


def _dtype(name: str) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, name)
    return dtype
