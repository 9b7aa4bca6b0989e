# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Timers on a clock of our own."""

from __future__ import annotations

import time

import pytest

from megacurl.observe.schema import UnknownMetricError
from megacurl.observe.timers import Timers


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_seconds_add_up_nest_and_start_over() -> None:
    clock = Clock()
    timers = Timers(clock=clock)
    with timers("step"):
        for seconds in (2.0, 3.0):
            with timers("generate"):
                clock.now += seconds
        with timers("train"):
            clock.now += 4.0
    assert timers.pop() == {"time/generate": 5.0, "time/train": 4.0, "time/step": 9.0}
    assert timers.pop() == {}


def test_time_counts_also_when_the_body_raises() -> None:
    clock = Clock()
    timers = Timers(clock=clock)
    with pytest.raises(KeyError), timers("sync"):
        clock.now += 1.5
        raise KeyError
    assert timers.pop() == {"time/sync": 1.5}
    with timers("sync"):
        pass


def test_the_device_is_waited_for_before_each_reading() -> None:
    clock = Clock()

    def finish_device_work() -> None:
        clock.now += 10.0

    timers = Timers(synchronize=finish_device_work, clock=clock)
    with timers("train"):
        clock.now += 1.0
    assert timers.pop() == {"time/train": 11.0}


def test_misuse_is_named() -> None:
    timers = Timers()
    with pytest.raises(UnknownMetricError, match="did you mean 'time/generate'"), timers("genrate"):
        pytest.fail("the body must not run")
    with timers("eval"):
        with pytest.raises(RuntimeError, match="'eval' is already running"), timers("eval"):
            pytest.fail("the body must not run")
        with pytest.raises(RuntimeError, match="still running: time/eval"):
            timers.pop()
    assert list(timers.pop()) == ["time/eval"]


def test_the_real_clock() -> None:
    timers = Timers()
    with timers("checkpoint"):
        time.sleep(0.02)
    assert 0.02 <= timers.pop()["time/checkpoint"] < 5.0
