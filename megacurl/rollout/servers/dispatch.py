# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Jobs dealt to servers: so many at once, those of one prompt together, a dead one's to the others.

A job is done exactly once: it belongs to a queue or to the worker that waits for its answer, and a
worker that is stopped puts it back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from megacurl.rollout.control import GenerateControl
from megacurl.rollout.servers.endpoint import Endpoint, ServerError, ServerUnavailable

_POLL_S = 0.05
_MISSES = 3
"""Health checks in a row without an answer after which a server counts as dead."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Job(Generic[Result]):
    """Something a server does. ``key``: jobs with the same one go to the same server if it can
    take them (it knows their prompt already)."""

    key: Hashable
    run: Callable[[Endpoint], Awaitable[Result]]


@dataclass
class _Server:
    endpoint: Endpoint
    queue: deque[int] = field(default_factory=deque)
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    dead: str | None = None


class Dispatcher(Generic[Result]):
    """Runs jobs on servers.

    Args:
        endpoints: the servers.
        concurrency: jobs that a server works on at once.
        health_timeout: seconds within which a living server answers ``/health``; after three
            misses in a row it counts as dead.
        abort: makes a server give up what it works on, so that the jobs there return what they
            have; called when ``control`` says stop.
        grace: seconds that jobs have to return then.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        concurrency: int,
        health_timeout: float,
        abort: Callable[[Endpoint], Awaitable[None]],
        grace: float,
    ) -> None:
        self._servers = [_Server(endpoint) for endpoint in endpoints]
        self._concurrency, self._health_timeout = concurrency, health_timeout
        self._abort, self._grace = abort, grace
        self._jobs: Sequence[Job[Result]] = ()
        self._results: dict[int, Result] = {}
        self._failure: BaseException | None = None
        self._stopping = False
        self._changed = asyncio.Condition()

    async def __call__(
        self, jobs: Sequence[Job[Result]], control: GenerateControl
    ) -> list[Result | None]:
        """The results in the order of ``jobs``; None for one that was stopped without any.

        Raises:
            ServerError: a server refused a job, or no server is left; names each one's reason.
        """
        self._jobs = jobs
        for index, server in enumerate(self._servers):
            server.queue.extend(self._home_jobs(index))
        for server in self._servers:
            count = min(self._concurrency, len(jobs))
            server.workers = [asyncio.create_task(self._work(server)) for _ in range(count)]
        watchers = [asyncio.create_task(self._watch(server)) for server in self._servers]
        try:
            await self._supervise(control)
        finally:
            await _cancel([*watchers, *(w for s in self._servers for w in s.workers)])
        return [self._results.get(i) for i in range(len(jobs))]

    @property
    def dead(self) -> dict[str, str]:
        """URL and reason of the servers that were lost."""
        return {s.endpoint.url: s.dead for s in self._servers if s.dead is not None}

    def _home_jobs(self, server: int) -> list[int]:
        keys = list(dict.fromkeys(job.key for job in self._jobs))
        home = {key: i % len(self._servers) for i, key in enumerate(keys)}
        return [i for i, job in enumerate(self._jobs) if home[job.key] == server]

    async def _supervise(self, control: GenerateControl) -> None:
        reported, stopped_at = 0, None
        clock = asyncio.get_running_loop().time
        while len(self._results) < len(self._jobs):
            async with self._changed:
                if any(server.queue for server in self._servers):
                    self._changed.notify_all()  # a lost server's jobs wake nobody by themselves
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _POLL_S)
            if self._failure is not None:
                raise self._failure
            if len(self._results) > reported:
                reported = len(self._results)
                control.report(reported, len(self._jobs))
            if not self._stopping and control.must_stop():
                self._stopping, stopped_at = True, clock()
                await self._abort_everywhere()
            if stopped_at is not None and (self._idle() or clock() - stopped_at > self._grace):
                return
            alive = [server for server in self._servers if server.dead is None]
            if not alive:
                reasons = "; ".join(f"{url}: {why}" for url, why in self.dead.items())
                raise ServerError(f"no rollout server is left: {reasons}")

    def _idle(self) -> bool:
        queued = sum(len(server.queue) for server in self._servers)
        return queued + len(self._results) == len(self._jobs)

    async def _abort_everywhere(self) -> None:
        alive = [server for server in self._servers if server.dead is None]
        calls = (self._abort(server.endpoint) for server in alive)
        for server, outcome in zip(
            alive, await asyncio.gather(*calls, return_exceptions=True), strict=True
        ):
            if isinstance(outcome, ServerError):
                self._lose(server, str(outcome))

    async def _work(self, server: _Server) -> None:
        while server.dead is None:
            index = self._take(server)
            if index is None:
                async with self._changed:
                    await self._changed.wait()
                continue
            finished = False
            try:
                self._results[index] = await self._jobs[index].run(server.endpoint)
                finished = True
            except ServerUnavailable as error:
                self._lose(server, str(error))
            except Exception as error:
                self._failure = self._failure or error
            finally:
                if not finished:
                    server.queue.appendleft(index)
            async with self._changed:
                self._changed.notify_all()

    def _take(self, server: _Server) -> int | None:
        if self._stopping or self._failure is not None:
            return None
        if server.queue:
            return server.queue.popleft()
        # From the end of the longest other queue, dead ones' first: nobody else works on those.
        others = [other for other in self._servers if other.queue]
        if not others:
            return None
        return max(others, key=lambda other: (other.dead is not None, len(other.queue))).queue.pop()

    async def _watch(self, server: _Server) -> None:
        misses = 0
        while misses < _MISSES:
            await asyncio.sleep(self._health_timeout / 2)
            try:
                await server.endpoint.get("/health", timeout=self._health_timeout)
                misses = 0
            except ServerError as error:
                misses, last = misses + 1, str(error)
        self._lose(server, last)

    def _lose(self, server: _Server, reason: str) -> None:
        if server.dead is not None:
            return
        server.dead = reason
        current = asyncio.current_task()
        for worker in server.workers:
            if worker is not current:
                worker.cancel()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
