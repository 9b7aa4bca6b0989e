# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Presets: checked against the schema, and the numbers of the papers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from megacurl.config.batches import rollout_correction
from megacurl.config.errors import ConfigError
from megacurl.config.fields import field_specs
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


def test_ablations_of_cvpo_differ_by_one_switch() -> None:
    for name, use_w_s, use_w_d in (
        ("cvpo_stochasticity", True, False),
        ("cvpo_curriculum", False, True),
    ):
        config = resolve_defaults(algorithm=name)
        assert config.cvpo == replace(Config().cvpo, use_w_s=use_w_s, use_w_d=use_w_d)
        assert config.algorithm == replace(Config().algorithm, algorithm=name)


def test_orz_and_vc_ppo() -> None:
    orz = resolve_defaults(algorithm="orz")
    assert (orz.algorithm.lam_policy, orz.algorithm.lam_critic) == (1.0, 1.0)
    assert orz.algorithm.whiten_advantages == "population"
    rewards = orz.algorithm.reward_correct, orz.algorithm.reward_wrong
    assert (*rewards, orz.algorithm.reward_truncated) == (1.0, 0.0, 0.0)
    assert (orz.training.updates_per_rollout, orz.training.critic_updates_per_rollout) == (1, 12)
    vc_ppo = resolve_defaults(algorithm="vc_ppo").algorithm
    assert (vc_ppo.lam_policy, vc_ppo.lam_critic, vc_ppo.eps_clip_high) == (0.95, 1.0, 0.2)
    assert (vc_ppo.loss_agg_mode, vc_ppo.whiten_advantages) == ("seq-mean-token-mean", "off")
    assert (vc_ppo.critic_warmup_iters, vc_ppo.positive_lm_coef) == (100, 0.0)
    for algorithm in (orz.algorithm, vc_ppo):
        assert (algorithm.length_adaptive_alpha, algorithm.value_clip) == (None, None)


@pytest.mark.parametrize(
    ("name", "estimator", "std", "average", "clip"),
    [
        ("grpo", "grpo", "sample", "seq-mean-token-mean", (0.2, 0.2)),
        ("dr_grpo", "grpo", "none", "seq-mean-token-sum-norm", (0.2, 0.2)),
        ("rloo", "rloo", "sample", "seq-mean-token-mean", (0.2, 0.2)),
        ("gspo", "grpo", "sample", "seq-mean-token-mean", (3e-4, 4e-4)),
        ("dapo", "grpo", "sample", "token-mean", (0.2, 0.28)),
        ("vcrl", "grpo", "sample", "seq-mean-token-mean", (0.2, 0.2)),
        ("grpo_asyn", "grpo", "sample", "seq-mean-token-mean", (0.2, 0.2)),
    ],
)
def test_without_a_critic(
    name: str, estimator: str, std: str, average: str, clip: tuple[float, float]
) -> None:
    config = resolve_defaults(algorithm=name)
    algorithm = config.algorithm
    assert not algorithm.use_critic
    assert algorithm.critic_warmup_iters == algorithm.kl_coef == algorithm.positive_lm_coef == 0
    assert (algorithm.advantage_estimator, algorithm.grpo_std) == (estimator, std)
    assert algorithm.loss_agg_mode == average
    assert (algorithm.eps_clip, algorithm.eps_clip_high) == clip
    assert (algorithm.kl_estimator, algorithm.kl_placement) == ("k3", "loss")
    assert algorithm.ratio_level == ("sequence" if name == "gspo" else "token")
    assert config.training.updates_per_rollout == (4 if name == "gspo" else 1)
    assert not (config.cvpo.use_w_s or config.cvpo.use_w_d)
    sampling = {"dapo": "dynamic", "vcrl": "vcrl"}.get(name, "uniform")
    assert config.sampling.sampling == sampling
    assert config.rollout.rollout_lag == (name == "grpo_asyn")
    assert rollout_correction(config) == ("decoupled" if name == "grpo_asyn" else "recompute")
    assert algorithm.overlong_penalty == (name == "dapo")
    assert algorithm.reward_wrong == (0.0 if name == "vcrl" else -1.0)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_where_its_numbers_come_from(name: str) -> None:
    preset = PRESETS[name]
    assert preset.source
    assert set(preset.sources) <= set(field_specs())


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
