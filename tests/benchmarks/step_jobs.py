# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What the tests of the step benchmark ask the ranks of a world to do."""

from __future__ import annotations

from step_plan import Round, StepBench
from step_rounds import measure
from tests import jobs


def measure_rounds(bench: StepBench) -> list[Round]:
    """The benchmark's rounds in the world that exists."""
    return measure(bench, jobs.enter(bench.config))
