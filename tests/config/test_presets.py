# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Presets: checked against the schema, and the numbers of the papers."""

from __future__ import annotations

import pytest

from megacurl.config.errors import ConfigError
from megacurl.config.load import resolve_defaults
from megacurl.config.presets import PRESETS, Preset, preset_values
from megacurl.config.schema import Config
from megacurl.config.validate import find_problems


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_fits_the_schema_and_is_valid(name: str) -> None:
    config = resolve_defaults(algorithm=name)
    assert config.algorithm.algorithm == name
    problems = find_problems(config, "plan")
    assert problems == ["--hf-checkpoint is missing; give the Hugging Face folder of the policy"]


def test_cvpo_is_the_schema() -> None:
    assert resolve_defaults(algorithm="cvpo") == Config()
    config = Config()
    assert (config.algorithm.length_adaptive_alpha, config.algorithm.lam_critic) == (0.17, 0.1)
    assert (config.algorithm.critic_warmup_iters, config.cvpo.variance_coefficient) == (21, 0.3)


def test_vapo() -> None:
    config = resolve_defaults(algorithm="vapo")
    algorithm = config.algorithm
    assert (algorithm.length_adaptive_alpha, algorithm.lam_critic) == (0.05, 1.0)
    assert (algorithm.eps_clip, algorithm.eps_clip_high) == (0.2, 0.28)
    assert (algorithm.positive_lm_coef, algorithm.critic_warmup_iters) == (0.1, 50)
    assert not (config.cvpo.use_w_s or config.cvpo.use_w_d)


def test_ppo() -> None:
    config = resolve_defaults(algorithm="ppo")
    algorithm = config.algorithm
    assert algorithm.length_adaptive_alpha is None
    assert (algorithm.lam_policy, algorithm.lam_critic) == (0.95, 0.95)
    assert (algorithm.eps_clip, algorithm.eps_clip_high, algorithm.value_clip) == (0.2, 0.2, 0.2)
    assert algorithm.whiten_advantages == "sample"
    assert (algorithm.positive_lm_coef, algorithm.critic_warmup_iters) == (0.0, 0)
    assert not (config.cvpo.use_w_s or config.cvpo.use_w_d)


def test_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"--algorithm 'vap' is no preset \(did you mean 'vapo'"):
        preset_values("vap")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"lam_crtic": 1.0}, r"preset 'odd' sets 'lam_crtic' \(did you mean 'lam_critic'\?\)"),
        ({"lam_critic": "1"}, r"preset 'odd': lam_critic is '1', must be a number"),
        ({"algorithm": "ppo"}, r"preset 'odd' sets 'algorithm'"),
    ],
)
def test_a_preset_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, overrides: dict[str, object], message: str
) -> None:
    monkeypatch.setitem(PRESETS, "odd", Preset("does not fit", overrides))
    with pytest.raises(ConfigError, match=message):
        preset_values("odd")
