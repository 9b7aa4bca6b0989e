# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a run has cost so far, in device-seconds, so that curves can be drawn over compute."""

from __future__ import annotations

from collections.abc import Mapping

_TOTAL = "total"
_WHOLE = "step"


class ComputeMeter:
    """Device-seconds by phase since the beginning of the run: seconds x devices, added up.

    A device is held for the whole of a phase whether it works or waits, so this is what a cluster
    would charge. ``total`` is of the whole steps, phases and all between them; what a step 0
    measured outside of a step is added as it is.
    """

    def __init__(self, devices: int) -> None:
        """``devices``: ranks of the world, one device each."""
        if devices < 1:
            raise ValueError(f"devices is {devices}; give the ranks of the world")
        self.devices = devices
        self._spent: dict[str, float] = {}

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add a step's times, as :class:`~megacurl.observe.timers.Timers` names them."""
        self._spent = self._with(seconds)

    def _with(self, seconds: Mapping[str, float]) -> dict[str, float]:
        times = {name.removeprefix("time/"): value for name, value in seconds.items()}
        whole = times.pop(_WHOLE, None)
        times[_TOTAL] = sum(times.values()) if whole is None else whole
        spent = dict(self._spent)
        for name, value in times.items():
            spent[name] = spent.get(name, 0.0) + value * self.devices
        return spent

    def metrics(self) -> dict[str, float]:
        """Return the device-seconds so far as ``compute/<phase>`` and ``compute/total``."""
        return {f"compute/{name}": value for name, value in self._spent.items()}

    def state_dict(self, under_way: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the device-seconds by phase, JSON-able.

        Args:
            under_way: times of the step that saves this, which :meth:`add` has not had yet.
        """
        return self._with(under_way) if under_way else dict(self._spent)

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Go on from what a checkpoint says was spent, on however many devices."""
        self._spent = {str(name): float(value) for name, value in state.items()}
