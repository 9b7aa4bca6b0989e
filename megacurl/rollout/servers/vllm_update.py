# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A weight update of vLLM servers: every server gets every bucket, and proves what it got.

A server's version is set last, after its workers' fingerprints were compared: a server that tells
the version holds the weights.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from torch import Tensor

from megacurl.rollout.digest import tensor_digest
from megacurl.rollout.errors import UpdateError
from megacurl.rollout.servers.bucket_file import write_bucket
from megacurl.rollout.servers.endpoint import Endpoint, ServerError
from megacurl.rollout.types import TensorMeta
from megacurl.rollout.update import WeightUpdate

_SHORT_S, _LONG_S = 60.0, 600.0
_SHOWN = 4

UNVERIFIED = "unverified"
"""Version of a server while and after its weights change, until they are proven."""


class ServersUpdate(WeightUpdate):
    """Sends to all of ``urls``. Servers that fail are left out, as long as one is left.

    Args:
        urls: servers.
        folder: where buckets lie, seen by the trainer and the servers.
        lost: receives the servers that fail, and why; those in it are left out.
        manifest, version, on_close: see ``WeightUpdate``.

    Raises:
        UpdateError: if no server began.
    """

    def __init__(
        self,
        urls: Sequence[str],
        folder: Path,
        lost: dict[str, str],
        manifest: Sequence[TensorMeta],
        version: int,
        on_close: Callable[[bool], None],
    ) -> None:
        super().__init__(manifest, version, on_close)
        self.digests: dict[str, int] = {}
        self._urls, self._folder, self._lost = urls, folder, lost
        self._everywhere(_begin)

    def _write(self, named_tensors: Sequence[tuple[str, Tensor]]) -> None:
        self.digests.update((name, tensor_digest(tensor)) for name, tensor in named_tensors)
        with tempfile.TemporaryDirectory(prefix="megacurl-", dir=self._folder) as folder:
            path = Path(folder) / "bucket"
            metas = write_bucket(path, named_tensors)
            tensors = [[meta.name, list(meta.shape), meta.dtype] for meta in metas]
            body = {"update_info": {"path": str(path), "tensors": tensors}}

            async def send(server: Endpoint) -> None:
                await server.post("/update_weights", body, timeout=_LONG_S)

            self._everywhere(send)

    def _finish(self) -> None:
        async def finish(server: Endpoint) -> None:
            await server.post("/finish_weight_update", {}, timeout=_LONG_S)
            await _reset_cache(server)
            await check_workers(server, self.digests)
            await server.post(
                "/update_weight_version", {"new_version": str(self.version)}, timeout=_SHORT_S
            )

        self._everywhere(finish)

    def _rollback(self) -> None:
        """Nothing: the next update of a server clears away what is left of this one."""

    def _everywhere(self, act: Callable[[Endpoint], Awaitable[None]]) -> None:
        """Do it on all servers at once; those that fail are out."""
        self._lost |= asyncio.run(_gather([u for u in self._urls if u not in self._lost], act))
        if len(self._lost) == len(self._urls):
            raise UpdateError(
                f"no rollout server holds version {self.version}: "
                + "; ".join(f"{url}: {reason}" for url, reason in self._lost.items())
            )


async def _gather(
    urls: Sequence[str], act: Callable[[Endpoint], Awaitable[None]]
) -> dict[str, str]:
    """Why it failed, by URL, where it failed."""
    async with Endpoint.opened(*urls) as servers:
        outcomes = await asyncio.gather(*(act(s) for s in servers), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, ServerError):
            raise outcome
    return {
        url: str(outcome)
        for url, outcome in zip(urls, outcomes, strict=True)
        if isinstance(outcome, ServerError)
    }


async def _begin(server: Endpoint) -> None:
    await server.post("/update_weight_version", {"new_version": UNVERIFIED}, timeout=_SHORT_S)
    await server.post("/init_weight_transfer_engine", {"init_info": {}}, timeout=_SHORT_S)
    try:
        await server.post("/start_weight_update", {}, timeout=_SHORT_S)
    except ServerError:
        # An update that broke off is still open there.
        with suppress(ServerError):
            await server.post("/finish_weight_update", {}, timeout=_LONG_S)
        await server.post("/start_weight_update", {}, timeout=_SHORT_S)


async def _reset_cache(server: Endpoint) -> None:
    answer = await server.post("/reset_prefix_cache", {}, timeout=_SHORT_S)
    if isinstance(answer, dict) and answer.get("success") is False:
        raise ServerError(f"{server.url}: the prefix cache was not dropped, requests are running")


async def check_workers(server: Endpoint, sent: Mapping[str, int]) -> None:
    """Raise ServerError, naming worker and tensors, unless all workers got exactly ``sent``.

    Args:
        server: asked.
        sent: ``tensor_digest`` of every tensor of the last update.
    """
    answer = await server.post("/collective_rpc", {"method": "megacurl_digests"}, timeout=_LONG_S)
    try:
        reports = [(found["digests"], found["problem"]) for found in answer["results"]]
    except (KeyError, TypeError) as error:
        raise ServerError(f"{server.url}: no fingerprints but {answer!r}") from error
    if not reports:
        raise ServerError(f"{server.url}: no worker answered")
    wanted = {name: f"{value:016x}" for name, value in sent.items()}
    for rank, (found, problem) in enumerate(reports):
        where = f"{server.url}, worker {rank}"
        if problem:
            raise ServerError(f"{where}: {problem}")
        wrong = sorted(n for n in wanted.keys() | found if wanted.get(n) != found.get(n))
        if wrong:
            raise ServerError(
                f"{where}: {len(wrong)} of {len(sent)} tensors are not what the trainer sent:"
                f" {', '.join(wrong[:_SHOWN])}{', ...' if len(wrong) > _SHOWN else ''}"
            )
