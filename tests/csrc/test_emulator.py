# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The emulator finds what is wrong with a kernel, and says nothing of one that is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.csrc.build import BUILDS, run

MISTAKES = {
    "empty_grid": "the grid is empty",
    "big_block": "a block has 1 to 1024 threads",
    "half_a_warp": r"deadlock, 16 threads wait",
    "not_in_the_mask": "the calling lane is not in its own mask: __shfl_xor_sync (",
    "reads_outside_the_mask": "a shuffle reads a lane outside the mask: __shfl_sync (",
    "names_missing_lanes": "the mask names lanes that do not exist",
    "two_shuffles": "lanes of one mask meet at different places",
    "barrier_in_a_branch": "__syncthreads",
    "two_barriers": "threads meet at different __syncthreads",
    "barrier_against_shuffle": "deadlock, 63 threads wait",
    "too_much_shared": "more shared memory than a block has",
    "reads_unwritten": "wrong at 0",
    "missing_barrier": "wrong at 0",
}
SANITIZER = {
    "beyond_shared": ("sanitized", "AddressSanitizer: heap-buffer-overflow"),
    "misaligned": ("sanitized", "misaligned address"),
    # These give the right result in the emulator whatever the order.
    "blocks_race": ("threads", "ThreadSanitizer: data race"),
    "shuffle_as_barrier": ("threads", "ThreadSanitizer: data race"),
}
RIGHT = ("right", "right_votes", "right_warp_barrier")


def test_all_cases_are_here(program: Callable[[str, str], Path]) -> None:
    listed = run(program("misuse", "plain")).stdout.split()
    assert set(listed) == {*MISTAKES, *SANITIZER, *RIGHT}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(program: Callable[[str, str], Path], case: str) -> None:
    done = run(program("misuse", "plain"), case)
    assert done.returncode != 0
    assert MISTAKES[case] in done.stdout + done.stderr


@pytest.mark.parametrize("case", SANITIZER)
def test_accesses_and_races_are_left_to_the_sanitizers(
    program: Callable[[str, str], Path], case: str
) -> None:
    build, message = SANITIZER[case]
    done = run(program("misuse", build), case)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize("case", RIGHT)
def test_no_false_alarm(
    program: Callable[[str, str], Path], case: str, order: str, build: str
) -> None:
    done = run(program("misuse", build), case, order)
    assert done.returncode == 0, done.stdout + done.stderr
