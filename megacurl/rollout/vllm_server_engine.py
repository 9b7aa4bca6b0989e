# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""vLLM servers apart from the trainer, shared by all of its ranks."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from megacurl.rollout.configured import ConfiguredEngine
from megacurl.rollout.control import GenerateControl
from megacurl.rollout.digest import combine_digests
from megacurl.rollout.errors import EngineStateError
from megacurl.rollout.hf_model import bounded_length, config_manifest
from megacurl.rollout.servers.dispatch import Dispatcher, Job
from megacurl.rollout.servers.endpoint import (
    Endpoint,
    ServerError,
    ServerUnavailable,
    wait_until_up,
    with_retries,
)
from megacurl.rollout.servers.vllm_api import (
    ABORT,
    GENERATE,
    abort_body,
    generate_body,
    read_sample,
)
from megacurl.rollout.servers.vllm_update import ServersUpdate, check_workers
from megacurl.rollout.types import NO_WEIGHTS, Capabilities, MemoryTag, Request, Sample, TensorMeta
from megacurl.rollout.update import WeightUpdate

_SHORT_S = 60.0
_HEALTH_S = 10.0
_ATTEMPTS = 3


class VLLMServerEngine(ConfiguredEngine):
    """Generates on running vLLM servers over HTTP.

    A server that fails loses its part of the work to the others, and gets weights again, if it is
    back, at the next update. Servers are started by ``megacurl.rollout.servers.launch`` or by
    anybody, as docs/rollout.md tells.

    Args:
        model: folder in Hugging Face format, whose config the servers have too.
        load_weights: must be False: what the servers were started with is never used.
        dtype: of the servers' weights.
        device: of the trainer; not used.
        max_model_len: prompt plus generated tokens; default: the model's own limit.
        max_batch_size: samples that one server works on at once.
        eos_token_ids: default: those of generation_config.json, else of config.json.
        urls: ``http://host:port`` of every server; may be given later, by ``attach``.
        leader: whether this rank's engine sends weights and pauses; one of all ranks'.
        transfer_dir: folder for weights on their way, seen by the trainer and the servers.
        start_timeout: seconds that servers may take to come up.
        health_timeout: seconds within which a living server answers.
    """

    is_client = True

    def __init__(
        self,
        model: str | Path,
        *,
        load_weights: bool = False,
        dtype: str = "float32",
        device: object = None,
        max_model_len: int | None = None,
        max_batch_size: int = 256,
        eos_token_ids: Sequence[int] | None = None,
        urls: Sequence[str] = (),
        leader: bool = True,
        transfer_dir: str | Path = "/dev/shm",
        start_timeout: float = 600.0,
        health_timeout: float = _HEALTH_S,
    ) -> None:
        if load_weights:
            raise ValueError("load_weights=True: servers get their weights from the trainer")
        super().__init__(model, load_weights=False, dtype=dtype, eos_token_ids=eos_token_ids)
        if max_batch_size < 1:
            raise ValueError(f"max_batch_size must be >= 1, not {max_batch_size!r}")
        self._max_model_len = bounded_length(
            max_model_len, int(self._config.max_position_embeddings), "its positions"
        )
        self._max_batch_size, self._leader = max_batch_size, leader
        self._transfer_dir = Path(transfer_dir)
        self._start_timeout, self._health_timeout = start_timeout, health_timeout
        self._urls: list[str] = []
        self._lost: dict[str, str] = {}
        self._digests: dict[str, int] = {}
        self._manifest = config_manifest(self._config, self._dtype)
        # Names of requests are the server's to keep apart, and other ranks send some too.
        self._prefix, self._count = uuid4().hex[:12], itertools.count()
        self.attach(urls)

    def attach(self, urls: Sequence[str]) -> None:
        """Work with these servers. Raises ValueError for one that is no http URL, or is twice."""
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"{url!r} is no URL of a server; give http://host:port")
        cleaned = [url.rstrip("/") for url in urls]
        if len(set(cleaned)) != len(cleaned):
            raise ValueError(f"a server is named twice: {', '.join(cleaned)}")
        self._urls = cleaned

    @property
    def capabilities(self) -> Capabilities:
        """See ``RolloutEngine.capabilities``."""
        return Capabilities(
            partial_rollouts=True,
            scoring=False,
            releases_memory=False,
            concurrent=True,
            transports=frozenset({"file"}),
        )

    @property
    def lost(self) -> dict[str, str]:
        """Servers that are out of work until the next update reaches them, and why."""
        return dict(self._lost)

    def manifest(self) -> list[TensorMeta]:
        """Parameters by their Hugging Face name; a tied head is not listed."""
        return list(self._manifest)

    def digest(self) -> str:
        """Fingerprint of what the trainer sent last, after all workers confirmed it anew."""
        self._require_alive("digest")
        asyncio.run(self._check_workers())
        return combine_digests(self._digests)

    async def _check_workers(self) -> None:
        async with Endpoint.opened(*self._working()) as servers:
            await asyncio.gather(*(check_workers(server, self._digests) for server in servers))

    def metrics(self) -> dict[str, float]:
        """See ``RolloutEngine.metrics``; and how many servers there are, and work."""
        return {
            **super().metrics(),
            "servers": float(len(self._urls)),
            "servers_lost": float(len(self._lost)),
        }

    # ---- life -----------------------------------------------------------------------------

    def _start(self) -> int:
        if not self._urls:
            raise EngineStateError("start: no servers; give their URLs, or launch some")
        asyncio.run(self._wait_for_all())
        return NO_WEIGHTS

    async def _wait_for_all(self) -> None:
        async with Endpoint.opened(*self._urls) as servers:
            await asyncio.gather(*(self._wait_for(server) for server in servers))

    async def _wait_for(self, server: Endpoint) -> None:
        await wait_until_up(server, self._start_timeout)
        models = await server.get("/v1/models", timeout=_SHORT_S)
        longest = models["data"][0].get("max_model_len") if models.get("data") else None
        if longest is None or longest < self._max_model_len:
            raise EngineStateError(
                f"start: {server.url} takes {longest} tokens, prompt and response have up to"
                f" {self._max_model_len}; start it with --max-model-len {self._max_model_len}"
            )

    def _shutdown(self) -> None:
        """Servers belong to whoever started them."""

    def _alive(self) -> bool:
        return bool(self._working())

    def _working(self) -> list[str]:
        return [url for url in self._urls if url not in self._lost]

    # ---- generation -----------------------------------------------------------------------

    def _generate(self, requests: Sequence[Request], control: GenerateControl) -> list[Sample]:
        return asyncio.run(self._generate_all(requests, control))

    async def _generate_all(
        self, requests: Sequence[Request], control: GenerateControl
    ) -> list[Sample]:
        running: dict[str, set[str]] = {url: set() for url in self._working()}
        cells = [(request, i) for request in requests for i in range(request.num_samples)]
        jobs = [Job(request.id, self._sampler(request, i, running)) for request, i in cells]

        async def abort(server: Endpoint) -> None:
            if running[server.url]:
                await server.post(ABORT, abort_body(running[server.url]), timeout=_SHORT_S)

        async with Endpoint.opened(*running) as servers:
            dispatch: Dispatcher[Sample] = Dispatcher(
                servers,
                concurrency=self._max_batch_size,
                health_timeout=self._health_timeout,
                abort=abort,
                grace=self._health_timeout,
            )
            try:
                samples = await dispatch(jobs, control)
            finally:
                self._lost |= dispatch.dead
        return [
            sample or Sample(request.id, i, version=self._version)
            for sample, (request, i) in zip(samples, cells, strict=True)
        ]

    def _sampler(
        self, request: Request, index: int, running: dict[str, set[str]]
    ) -> Callable[[Endpoint], Awaitable[Sample]]:
        """What asks a server for one sample."""

        async def once(server: Endpoint) -> Any:
            name = f"{self._prefix}-{next(self._count)}"  # anew: the last try may still run there
            running[server.url].add(name)
            try:
                body = generate_body(request, request.seeds[index], self._eos, name)
                return await server.post(GENERATE, body, timeout=None)
            finally:
                running[server.url].discard(name)

        async def sample(server: Endpoint) -> Sample:
            answer = await with_retries(lambda: once(server), _ATTEMPTS)
            found, version = read_sample(answer, request, index, server.url)
            if found.token_ids and version != str(self._version):
                raise ServerUnavailable(
                    f"{server.url} generated with weights {version!r} instead of {self._version}"
                )
            found.version = self._version
            return found

        return sample

    # ---- pause, memory, weights -----------------------------------------------------------

    def _drop_caches(self) -> None:
        """Servers drop theirs in an update, the only time when weights change."""

    def _release(self, tags: set[MemoryTag]) -> None:
        """The servers' memory is not the trainer's."""

    def _reacquire(self, tags: set[MemoryTag]) -> None:
        """Nothing was given away."""

    def _begin_update(self, manifest: Sequence[TensorMeta], version: int) -> WeightUpdate:
        if not self._leader:
            raise EngineStateError("open_update: this rank follows; the leader sends the weights")
        if not os.access(self._transfer_dir, os.W_OK):
            raise EngineStateError(f"open_update: the folder {self._transfer_dir} is not writable")
        self._lost = {}  # who is back gets the weights too
        update = ServersUpdate(
            self._urls,
            self._transfer_dir,
            self._lost,
            manifest,
            version,
            lambda committed: self._update_closed(version, committed),
        )
        self._digests = update.digests
        return update

    def _follow(self, version: int) -> None:
        self._lost = asyncio.run(self._others_than(version))
        if not self._working():
            reasons = "; ".join(f"{url}: {why}" for url, why in self._lost.items())
            raise EngineStateError(f"follow: no server holds version {version}: {reasons}")

    async def _others_than(self, version: int) -> dict[str, str]:
        """Servers that do not hold ``version``, and why."""
        lost: dict[str, str] = {}
        async with Endpoint.opened(*self._urls) as servers:
            for server in servers:
                try:
                    info = await server.get("/weight_info", timeout=self._health_timeout)
                except ServerError as error:
                    lost[server.url] = str(error)
                    continue
                if str(info.get("weight_version")) != str(version):
                    lost[server.url] = f"it holds version {info.get('weight_version')}"
        return lost


ENGINE = VLLMServerEngine
