# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Device-seconds add up over steps, phases, checkpoints and changes of the layout."""

from __future__ import annotations

import json

import pytest

from megacurl.observe.compute import ComputeMeter
from megacurl.observe.schema import check_names, find_metric
from megacurl.observe.timers import Timers

STEP = {"time/generate": 3.0, "time/train": 4.0, "time/step": 8.0}


def test_seconds_times_devices_add_up() -> None:
    meter = ComputeMeter(4)
    assert meter.metrics() == {}
    meter.add({"time/eval": 2.0})  # before the first step
    assert meter.metrics() == {"compute/eval": 8.0, "compute/total": 8.0}
    meter.add(STEP)
    meter.add({**STEP, "time/eval": 1.0, "time/step": 9.0})
    assert meter.metrics() == {
        "compute/eval": 12.0,
        "compute/generate": 24.0,
        "compute/train": 32.0,
        "compute/total": 8.0 + 32.0 + 36.0,
    }
    check_names(meter.metrics())
    assert find_metric("compute/total").unit == find_metric("compute/train").unit


def test_a_resumed_run_goes_on_from_what_was_spent() -> None:
    meter = ComputeMeter(4)
    meter.add(STEP)
    # The checkpoint of the second step is written before that step is over.
    state = json.loads(json.dumps(meter.state_dict({"time/generate": 1.0, "time/step": 1.5})))
    assert meter.metrics()["compute/total"] == 32.0  # asking changes nothing
    resumed = ComputeMeter(2)
    resumed.load_state_dict(state)
    resumed.add(STEP)
    assert resumed.metrics() == {
        "compute/generate": 12.0 + 4.0 + 6.0,
        "compute/train": 16.0 + 8.0,
        "compute/total": 32.0 + 6.0 + 16.0,
    }
    assert ComputeMeter(1).state_dict() == {}
    with pytest.raises(ValueError, match="devices is 0"):
        ComputeMeter(0)


def test_running_timers_are_in_what_is_saved() -> None:
    now = [10.0]
    timers = Timers(clock=lambda: now[0])
    assert timers.so_far() == {}
    with timers("step"):
        with timers("train"):
            now[0] += 4.0
        with timers("checkpoint"):
            now[0] += 1.0
            expected = {"time/step": 5.0, "time/train": 4.0, "time/checkpoint": 1.0}
            assert timers.so_far() == expected
            assert timers.so_far() == expected
            now[0] += 2.0
    assert timers.pop() == {"time/step": 7.0, "time/train": 4.0, "time/checkpoint": 3.0}
    assert timers.so_far() == {}
