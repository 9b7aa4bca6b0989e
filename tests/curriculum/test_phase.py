# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The phase switch."""

from __future__ import annotations

import pytest

from megacurl.curriculum.phase import PhaseSwitch


def phases(switch: PhaseSwitch, verdicts: str) -> str:
    """Return e.g. ``"eebb"`` for verdicts such as ``"0011"``."""
    return "".join(switch.step(v == "1")[0] for v in verdicts)


def test_one_way_switch_is_a_latch() -> None:
    assert phases(PhaseSwitch(), "01000") == "ebbbb"


def test_two_way_switch_returns() -> None:
    assert phases(PhaseSwitch(one_way=False), "0110010") == "ebbeebe"
    assert phases(PhaseSwitch(one_way=False, patience=2), "110101100") == "ebeeeebee"


def test_patience_counts_rounds_in_a_row() -> None:
    assert phases(PhaseSwitch(patience=3), "1101110") == "eeeeebb"


def test_no_switch_before_the_least_round() -> None:
    assert phases(PhaseSwitch(min_round=3), "1111") == "eeeb"
    assert phases(PhaseSwitch(min_round=3), "11100") == "eeeee"


def test_state_continues_a_streak() -> None:
    whole = PhaseSwitch(patience=3, min_round=2)
    expected = phases(whole, "0111011")
    for cut in range(7):
        first, second = (PhaseSwitch(patience=3, min_round=2) for _ in range(2))
        head = phases(first, "0111011"[:cut])
        second.load_state_dict(first.state_dict())
        assert head + phases(second, "0111011"[cut:]) == expected


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="phase_patience is 0"):
        PhaseSwitch(patience=0)
    with pytest.raises(ValueError, match="phase_min_round is -1"):
        PhaseSwitch(min_round=-1)
    switch = PhaseSwitch()
    with pytest.raises(ValueError, match="'late'"):
        switch.load_state_dict({"phase": "late", "round": 3, "streak": 1})
    assert switch.state_dict() == PhaseSwitch().state_dict()
