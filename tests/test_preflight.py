# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The parts that a run is made of, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from megacurl.config.errors import ConfigError
from megacurl.preflight import check_parts, check_same_model
from megacurl.rewards.coin_flip import CoinFlip
from megacurl.rewards.list_answers import ListAnswers
from megacurl.rewards.math_rule import MathRule
from tests import jobs


@pytest.mark.parametrize(
    ("flat", "verifier"),
    [
        ({}, MathRule()),
        ({"symbolic": False}, MathRule(symbolic=False)),
        ({"require_value": True}, MathRule(require_value=True)),
        ({"verifier": "coin_flip"}, CoinFlip()),
        ({"verifier": "list_answers", "correct_threshold": 0.5}, ListAnswers(0.5)),
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
    config = jobs.settings(tiny_model("qwen2-tied"), correct_threshold=0.5)
    with pytest.raises(ConfigError, match=r"--verifier math: .*'correct_threshold': 0.5"):
        check_parts(config)


@pytest.mark.parametrize(
    ("preset", "fields", "says"),
    [
        ("cvpo", {"advantage_estimator": "gea"}, "--advantage-estimator gea: unknown .*'gae'"),
        ("grpo", {"advantage_estimator": "gae"}, "needs the values of a critic.*--use-critic"),
        ("vapo", {"advantage_estimator": "grpo"}, "--use-critic: nothing would read its values"),
        ("rloo", {"n_samples_per_prompt": 1}, "--n-samples-per-prompt 1: .*at least 2"),
        ("vapo", {"sampling": "vrcl"}, "--sampling vrcl: unknown .*'vcrl'"),
        ("vapo", {"sampling": "dynamic", "n_samples_per_prompt": 1}, "--sampling dynamic looks"),
        (
            "grpo",
            {"kl_coef": 0.1, "kl_placement": "reward"},
            "--kl-coef 0.1 with --kl-placement reward does not reach --advantage-estimator grpo",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    tiny_model: Callable[[str], Path], preset: str, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        check_parts(jobs.settings(tiny_model("qwen2-tied"), preset, **fields))


def test_a_critic_may_serve_the_weights_alone(tiny_model: Callable[[str], Path]) -> None:
    """W_S on group advantages: the critic's values are read, though not by the estimator."""
    folder = tiny_model("qwen2-tied")
    _, shapes = check_parts(jobs.settings(folder, "cvpo", advantage_estimator="grpo"))
    assert shapes.keys() == {"actor", "critic"}
    _, shapes = check_parts(jobs.settings(folder, "grpo"))
    assert shapes.keys() == {"actor"}


def test_a_checkpoint_with_other_models_is_refused(tiny_model: Callable[[str], Path]) -> None:
    folder = tiny_model("qwen2-tied")
    _, both = check_parts(jobs.settings(folder))
    _, one = check_parts(jobs.settings(folder, "grpo"))
    for saved, mine, says in (
        (both, one, "has a critic, this run has none"),
        (one, both, "has none, this run has a critic"),
    ):
        state = {"shapes": {role: vars(shape) for role, shape in saved.items()}}
        with pytest.raises(ConfigError, match=says):
            check_same_model(state, mine, Path("run"))
