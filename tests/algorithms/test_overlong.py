# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The soft overlong punishment beyond the golden numbers."""

from __future__ import annotations

import pytest

from megacurl.algorithms.overlong import overlong_penalty


def test_it_falls_and_never_below_the_factor() -> None:
    found = [overlong_penalty(n, max_length=10, buffer=4, factor=0.5) for n in range(20)]
    assert found[:7] == [0.0] * 7
    assert found == sorted(found, reverse=True)
    assert found[10] == found[19] == -0.5
    assert overlong_penalty(5, max_length=5, buffer=5) == -1.0


@pytest.mark.parametrize("buffer", [0, 11])
def test_a_buffer_that_does_not_fit_is_refused(buffer: int) -> None:
    with pytest.raises(ValueError, match=f"buffer is {buffer}"):
        overlong_penalty(3, max_length=10, buffer=buffer)
