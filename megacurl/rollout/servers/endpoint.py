# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One server's HTTP interface: JSON in, JSON out, and two kinds of failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

import httpx2
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from megacurl.rollout.errors import EngineStateError, RolloutError

_CONNECT_S = 10.0
_SHOWN = 300

Answer = TypeVar("Answer")


class ServerError(RolloutError, RuntimeError):
    """A server did not do what it was asked; the message names it."""


class ServerUnavailable(ServerError):
    """No usable answer: not reached, an error of its own (5xx), or no JSON. Another one may do."""


class Endpoint:
    """A server at ``url``.

    Args:
        url: ``http://host:port``.
        client: the connections of the present call.
    """

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self.url = url.rstrip("/")
        self._client = client

    @classmethod
    @asynccontextmanager
    async def opened(cls, *urls: str) -> AsyncIterator[list[Self]]:
        """Endpoints that share a client, closed at the end."""
        # A connection each: a server closes idle ones, and those of a request that failed, when it
        # likes, and the next request on such a one would look like the server's death.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        # Proxies of the environment are for the world outside, not for the cluster's machines.
        async with httpx2.AsyncClient(limits=limits, trust_env=False) as client:
            yield [cls(url, client) for url in urls]

    async def get(self, route: str, *, timeout: float) -> Any:
        """The JSON that ``route`` answers with. Errors as ``post``."""
        return await self._call("GET", route, None, timeout)

    async def post(
        self,
        route: str,
        body: Any = None,
        *,
        timeout: float | None,
    ) -> Any:
        """Send ``body`` as JSON; return the JSON of the answer, None for an empty one.

        Args:
            route: path on the server.
            body: anything JSON holds.
            timeout: seconds to wait for the answer; None waits for ever.

        Raises:
            ServerUnavailable: no usable answer.
            ServerError: the server refused (4xx).
        """
        return await self._call("POST", route, body, timeout)

    async def _call(
        self,
        method: str,
        route: str,
        body: Any,
        timeout: float | None,
    ) -> Any:
        where = f"{self.url}{route}"
        limits = httpx2.Timeout(timeout, connect=_CONNECT_S)
        try:
            answer = await self._client.request(method, where, json=body, timeout=limits)
        except httpx2.TimeoutException as error:
            raise ServerUnavailable(f"{where}: no answer within {timeout:g} s") from error
        except httpx2.HTTPError as error:
            raise ServerUnavailable(f"{where}: {type(error).__name__} {error}".strip()) from error
        if answer.is_server_error:
            raise ServerUnavailable(f"{where}: HTTP {answer.status_code}: {_excerpt(answer.text)}")
        if not answer.is_success:
            raise ServerError(f"{where}: HTTP {answer.status_code}: {_excerpt(answer.text)}")
        if not answer.content.strip():
            return None
        try:
            return answer.json()
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ServerUnavailable(f"{where}: no JSON but {_excerpt(answer.text)!r}") from error


async def wait_until_up(
    server: Endpoint, seconds: float, check: Callable[[], None] = lambda: None
) -> None:
    """Return when ``server`` answers ``/health``.

    Args:
        server: asked twice a second.
        seconds: to wait at most.
        check: called between; raises if waiting is of no use.

    Raises:
        EngineStateError: it did not come up; tells what was the matter last.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while True:
        try:
            await server.get("/health", timeout=_CONNECT_S)
            return
        except ServerUnavailable as error:
            check()
            if clock() > end:
                raise EngineStateError(
                    f"start: {server.url} did not come up within {seconds:g} s: {error}"
                ) from error
        await asyncio.sleep(0.5)


async def with_retries(call: Callable[[], Awaitable[Answer]], attempts: int) -> Answer:
    """Await ``call()``, again while servers are unavailable, with growing pauses between.

    Raises the last try's ServerUnavailable; any other error at once.
    """
    retrying = AsyncRetrying(
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.2, max=5.0),
        retry=retry_if_exception_type(ServerUnavailable),
        reraise=True,
    )
    async for attempt in retrying:
        with attempt:
            return await call()
    raise AssertionError("the last attempt raises")


def _excerpt(text: str) -> str:
    short = " ".join(text.split())
    return short if len(short) <= _SHOWN else short[:_SHOWN] + " ..."
