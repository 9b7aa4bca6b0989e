# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The switch from the early phase of the curriculum to the bottleneck phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Phase = Literal["early", "bottleneck"]


class PhaseSwitch:
    """Turns a stream of stagnation verdicts into a phase.

    Args:
        one_way: the bottleneck phase is final; else a round that is not stagnant ends it.
        patience: stagnant rounds in a row before the switch.
        min_round: rounds (counted from 0) before this one never switch; they do count as patience.
    """

    def __init__(self, *, one_way: bool = True, patience: int = 1, min_round: int = 0) -> None:
        if patience < 1:
            raise ValueError(f"phase_patience is {patience}; it must be at least 1")
        if min_round < 0:
            raise ValueError(f"phase_min_round is {min_round}; it must be at least 0")
        self.one_way = one_way
        self.patience = patience
        self.min_round = min_round
        self.phase: Phase = "early"
        self._round = 0
        self._streak = 0

    def step(self, stagnant: bool) -> Phase:
        """Take the verdict of one round and return the phase that holds in that same round."""
        self._streak = self._streak + 1 if stagnant else 0
        reached = self._streak >= self.patience and self._round >= self.min_round
        if reached:
            self.phase = "bottleneck"
        elif not self.one_way and not stagnant:
            self.phase = "early"
        self._round += 1
        return self.phase

    def state_dict(self) -> dict[str, Any]:
        """Return phase, rounds seen and current streak."""
        return {"phase": self.phase, "round": self._round, "streak": self._streak}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state_dict`."""
        phase = state["phase"]
        if phase not in ("early", "bottleneck"):
            raise ValueError(f"the phase in the state is {phase!r}; use 'early' or 'bottleneck'")
        rounds, streak = int(state["round"]), int(state["streak"])
        self.phase, self._round, self._streak = phase, rounds, streak
