# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Aborted and timed-out calls return partials that are prefixes of the full run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from megacurl.rollout import EngineStateError, Request, RolloutEngine, Sample, SamplingSpec

REQUESTS = [
    Request(name, prompt, SamplingSpec(length, ignore_eos=True), (1, 2))
    for name, prompt, length in (("a", (5, 6, 7), 60), ("b", (9,), 8), ("c", (4, 4), 40))
]


def assert_partials(partial: list[Sample], full: list[Sample]) -> None:
    for cut, whole in zip(partial, full, strict=True):
        assert (cut.request_id, cut.index) == (whole.request_id, whole.index)
        length = len(cut.token_ids)
        assert cut.token_ids == whole.token_ids[:length]
        assert cut.log_probs == pytest.approx(whole.log_probs[:length], abs=1e-5)
        finished = length == len(whole.token_ids)
        assert cut.finish_reason == (whole.finish_reason if finished else "abort")


def after(calls: int) -> Callable[[], bool]:
    """True from the given call on."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


@pytest.mark.parametrize("steps", [0, 1, 8, 20])
def test_should_abort_between_tokens(steps: int, any_engine: RolloutEngine) -> None:
    full = any_engine.generate(REQUESTS)
    partial = any_engine.generate(REQUESTS, should_abort=after(steps))
    assert_partials(partial, full)
    assert [len(s.token_ids) for s in partial] == [min(steps, n) for n in (60, 60, 8, 8, 40, 40)]


def test_aborted_run_can_be_continued(any_engine: RolloutEngine) -> None:
    full = any_engine.generate(REQUESTS[:1])[0]
    partial = any_engine.generate(REQUESTS[:1], should_abort=after(15))[0]
    request = REQUESTS[0]
    rest = any_engine.generate(
        [Request("a", request.prompt_ids, request.sampling, (1,), tuple(partial.token_ids))]
    )[0]
    assert partial.token_ids + rest.token_ids == full.token_ids


def test_deadline(any_engine: RolloutEngine) -> None:
    full = any_engine.generate(REQUESTS)
    expired = any_engine.generate(REQUESTS, deadline=time.monotonic() - 1)
    assert all(not s.token_ids and s.finish_reason == "abort" for s in expired)
    relaxed = any_engine.generate(REQUESTS, deadline=time.monotonic() + 600)
    assert_partials(relaxed, full)
    assert [s.finish_reason for s in relaxed] == ["length"] * 6
    # A callback that is slower than the deadline stops the run at the next token.
    slow = any_engine.generate(
        REQUESTS,
        deadline=time.monotonic() + 1.0,
        on_progress=lambda done, total: time.sleep(1.1),
    )
    assert_partials(slow, full)
    assert [s.finish_reason for s in slow] == ["abort"] * 2 + ["length"] * 2 + ["abort"] * 2


def test_waiting_requests_are_aborted_too(start_any: Any, any_engine: RolloutEngine) -> None:
    narrow = start_any(max_batch_size=2)
    partial = narrow.generate(REQUESTS, should_abort=after(10))
    assert_partials(partial, any_engine.generate(REQUESTS))
    # Longest first: a runs, b and c never start.
    assert [len(s.token_ids) for s in partial] == [10, 10, 0, 0, 0, 0]


def test_progress_counts_samples(any_engine: RolloutEngine) -> None:
    seen: list[tuple[int, int]] = []
    any_engine.generate(REQUESTS, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 6), (4, 6), (6, 6)]


def test_pause_from_another_thread_returns_partials(start_any: Any) -> None:
    engine = start_any()
    full = engine.generate(REQUESTS)
    running = threading.Event()

    def check() -> bool:
        running.set()
        time.sleep(0.01)
        return False

    result: list[Sample] = []
    thread = threading.Thread(
        target=lambda: result.extend(engine.generate(REQUESTS, should_abort=check))
    )
    thread.start()
    assert running.wait(30)
    engine.pause()  # waits for the running call
    thread.join(30)
    assert not thread.is_alive()
    assert_partials(result, full)
    assert any(s.finish_reason == "abort" for s in result)
    with pytest.raises(EngineStateError, match=r"'paused'.*resume"):
        engine.generate(REQUESTS)
    engine.resume()
    assert [s.token_ids for s in engine.generate(REQUESTS)] == [s.token_ids for s in full]


def test_an_exception_in_a_callback_leaves_the_engine_usable(any_engine: RolloutEngine) -> None:
    def fail(done: int, total: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        any_engine.generate(REQUESTS, on_progress=fail)
    assert any_engine.state == "ready"
    assert len(any_engine.generate(REQUESTS)) == 6


def test_generate_inside_generate_is_refused(any_engine: RolloutEngine) -> None:
    def nested(done: int, total: int) -> None:
        any_engine.generate(REQUESTS)

    with pytest.raises(EngineStateError, match="within a running generate"):
        any_engine.generate(REQUESTS, on_progress=nested)
    assert any_engine.state == "ready"
