# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Jobs on servers that refuse, talk nonsense, answer late, or not at all: real sockets, no vLLM."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from megacurl.rollout.control import GenerateControl
from megacurl.rollout.servers.dispatch import Dispatcher, Job
from megacurl.rollout.servers.endpoint import (
    Endpoint,
    ServerError,
    ServerUnavailable,
    with_retries,
)
from megacurl.rollout.servers.launch import free_ports

NO_STOP = GenerateControl()


class Server:
    """Echoes its jobs; ``mode`` says what it does instead, from job number ``after`` on."""

    def __init__(self, mode: str = "good", after: int = 0, delay: float = 0.0) -> None:
        self.mode, self.after, self.delay = mode, after, delay
        self.jobs: list[Any] = []
        self.aborted = threading.Event()
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    @property
    def broken(self) -> bool:
        return self.mode != "good" and len(self.jobs) > self.after

    def answer(self, path: str, body: Any) -> tuple[int, bytes]:
        if path == "/health":
            if self.mode == "frozen" and self.broken:
                time.sleep(3)
            return 200, b""
        if path == "/abort":
            self.aborted.set()
            return 200, b"{}"
        with self._lock:
            self.jobs.append(body)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._job(body)
        finally:
            with self._lock:
                self.at_once -= 1

    def _job(self, body: Any) -> tuple[int, bytes]:
        if self.mode == "frozen" and self.broken:
            time.sleep(3)
        if self.mode == "until abort":
            self.aborted.wait(5)
        time.sleep(self.delay)
        if self.mode == "500" and self.broken:
            return 500, b"worker died"
        if self.mode == "garbage" and self.broken:
            return 200, b"<html>not json"
        if self.mode == "400" and self.broken:
            return 400, b"prompt too long"
        return 200, json.dumps({"job": body}).encode()


@contextmanager
def serving(server: Server) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(server.answer(self.path, None))

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"] or 0))
            self._reply(server.answer(self.path, json.loads(raw or b"null")))

        def _reply(self, answer: tuple[int, bytes]) -> None:
            with suppress(OSError):  # the dispatcher may have given this server up
                self.send_response(answer[0])
                self.send_header("content-length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()


def run(
    urls: list[str],
    count: int,
    control: GenerateControl = NO_STOP,
    concurrency: int = 4,
    prompts: int | None = None,
) -> tuple[list[Any], dict[str, str]]:
    """Dispatch ``count`` jobs; their results, and the servers that were lost."""

    async def dispatch() -> tuple[list[Any], dict[str, str]]:
        async def abort(server: Endpoint) -> None:
            await server.post("/abort", {}, timeout=5)

        def job(number: int) -> Job[Any]:
            async def send(server: Endpoint) -> Any:
                return (await server.post("/job", number, timeout=None))["job"]

            return Job(number % (prompts or count), send)

        async with Endpoint.opened(*urls) as servers:
            dispatcher: Dispatcher[Any] = Dispatcher(
                servers, concurrency=concurrency, health_timeout=0.2, abort=abort, grace=2.0
            )
            results = await dispatcher([job(i) for i in range(count)], control)
            return results, dispatcher.dead

    return asyncio.run(dispatch())


@pytest.mark.parametrize("count", [0, 1, 50])
def test_every_job_once_and_in_order(count: int) -> None:
    first, second = Server(), Server()
    with serving(first) as a, serving(second) as b:
        results, lost = run([a, b], count)
    assert results == list(range(count))
    assert Counter(first.jobs + second.jobs) == Counter(range(count))
    assert not lost
    assert max(first.most_at_once, second.most_at_once) <= 4


def test_jobs_of_a_prompt_stay_together() -> None:
    first, second = Server(delay=0.005), Server(delay=0.005)
    with serving(first) as a, serving(second) as b:
        run([a, b], 64, prompts=8)
    at_home = sum(job % 8 % 2 == 0 for job in first.jobs)
    at_home += sum(job % 8 % 2 == 1 for job in second.jobs)
    assert at_home >= 56  # the rest is what an idle server took over at the end


def test_an_idle_server_helps_a_slow_one() -> None:
    fast, slow = Server(), Server(delay=0.1)
    with serving(fast) as a, serving(slow) as b:
        results, _ = run([a, b], 60, prompts=2, concurrency=2)
    assert results == list(range(60))
    assert len(fast.jobs) > 2 * len(slow.jobs)


@pytest.mark.parametrize("mode", ["500", "garbage", "frozen"])
def test_the_jobs_of_a_lost_server_go_to_the_others(mode: str) -> None:
    good, bad = Server(delay=0.01), Server(mode, after=5, delay=0.01)
    with serving(good) as a, serving(bad) as b:
        begin = time.monotonic()
        results, lost = run([a, b], 60)
        seconds = time.monotonic() - begin
    assert results == list(range(60))
    assert list(lost) == [b] and b in lost[b]
    assert seconds < 3  # a frozen server is found by its silence, not by the end of its answer


def test_a_server_that_is_not_there() -> None:
    (port,) = free_ports(1)
    gone = f"http://127.0.0.1:{port}"
    good = Server()
    with serving(good) as a:
        results, lost = run([gone, a], 20)
        assert results == list(range(20)) and list(lost) == [gone]
    with pytest.raises(ServerError, match=f"no rollout server is left: {gone}.*{gone}"):
        run([gone], 3)


def test_a_refusal_is_the_callers_error() -> None:
    with (
        serving(Server()) as a,
        serving(Server("400", after=3)) as b,
        pytest.raises(ServerError, match="HTTP 400: prompt too long") as caught,
    ):
        run([a, b], 40)
    assert not isinstance(caught.value, ServerUnavailable)


def test_stopped_jobs_return_what_they_have() -> None:
    servers = [Server("until abort"), Server("until abort")]
    with ExitStack() as stack:
        urls = [stack.enter_context(serving(server)) for server in servers]
        begin = time.monotonic()
        control = GenerateControl(deadline=begin + 0.3)
        results, lost = run(urls, 20, control, concurrency=3)
        assert time.monotonic() - begin < 2
    begun = sorted(job for server in servers for job in server.jobs)
    assert len(begun) == 6 and not lost
    assert [r for r in results if r is not None] == begun
    assert results.count(None) == 14


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    with serving(Server(delay=0.005)) as a:
        run([a], 30, GenerateControl(on_progress=lambda done, of: seen.append((done, of))))
    assert seen[-1] == (30, 30) and seen == sorted(seen)


def test_retries_end_and_only_where_they_help() -> None:
    calls = 0

    async def fail(error: ServerError) -> None:
        nonlocal calls
        calls += 1
        raise error

    async def try_it(error: ServerError) -> None:
        await with_retries(lambda: fail(error), 3)

    with pytest.raises(ServerUnavailable):
        asyncio.run(try_it(ServerUnavailable("busy")))
    assert calls == 3
    with pytest.raises(ServerError):
        asyncio.run(try_it(ServerError("no such model")))
    assert calls == 4
