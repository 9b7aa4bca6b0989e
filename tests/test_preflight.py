# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The parts that a run is made of, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.errors import ConfigError
from megacurl.preflight import check_parts
from megacurl.rewards.coin_flip import CoinFlip
from megacurl.rewards.math_rule import MathRule
from tests import jobs


@pytest.mark.parametrize(
    ("flat", "verifier"),
    [
        ({}, MathRule()),
        ({"symbolic": False}, MathRule(symbolic=False)),
        ({"require_value": True}, MathRule(require_value=True)),
        ({"verifier": "coin_flip"}, CoinFlip()),
    ],
)
def test_flags_reach_the_verifier(
    tiny_model: Callable[[str], Path], flat: dict[str, Any], verifier: object
) -> None:
    found, shapes = check_parts(jobs.settings(tiny_model("qwen2-tied"), **flat))
    assert found == verifier
    assert shapes["actor"] == shapes["critic"]


def test_a_flag_that_the_verifier_does_not_know(tiny_model: Callable[[str], Path]) -> None:
    config = jobs.settings(tiny_model("qwen2-tied"), verifier="coin_flip", symbolic=False)
    with pytest.raises(ConfigError, match=r"--verifier coin_flip: .*'symbolic': False"):
        check_parts(config)
