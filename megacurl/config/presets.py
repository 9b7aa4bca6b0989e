# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Algorithm presets: a name for a set of settings, each of which a YAML key or flag overrides.

A new algorithm is one more entry in :data:`PRESETS`. Only what differs from the schema is listed,
and the schema's defaults are CVPO's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from megacurl.config.errors import ConfigError
from megacurl.config.fields import convert, field_specs
from megacurl.utils.names import nearest_hint


@dataclass(frozen=True)
class Preset:
    """What a preset is, and its overrides, field name -> value.

    source: where its numbers come from; sources: other places, field name -> place.
    """

    summary: str
    overrides: Mapping[str, object]
    source: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)


_UNWEIGHTED: dict[str, object] = {"use_w_s": False, "use_w_d": False}
_PLAIN_LOSS: dict[str, object] = {"eps_clip": 0.2, "eps_clip_high": 0.2, "positive_lm_coef": 0.0}
_ONE_LAMBDA: dict[str, object] = {"length_adaptive_alpha": None}
# A KL penalty is off, but --kl-coef alone turns on the one that GRPO describes.
_GROUP: dict[str, object] = {
    "use_critic": False,
    "critic_warmup_iters": 0,
    "advantage_estimator": "grpo",
    "loss_agg_mode": "seq-mean-token-mean",
    "kl_estimator": "k3",
    "kl_placement": "loss",
    **_PLAIN_LOSS,
    **_UNWEIGHTED,
}
_GROUP_SOURCES = {
    "grpo_std": "common practice (verl, slime, TRL)",
    "kl_estimator": "DeepSeekMath paper, for a --kl-coef above 0",
    "kl_placement": "DeepSeekMath paper, for a --kl-coef above 0",
}
_CVPO_SOURCES = {
    **dict.fromkeys(
        (
            "length_adaptive_alpha",
            "lam_critic",
            "eps_clip",
            "eps_clip_high",
            "positive_lm_coef",
            "critic_warmup_iters",
            "use_w_s",
            "use_w_d",
            "variance_coefficient",
            "wd_early",
            "wd_bottleneck",
        ),
        "CVPO paper, as printed",
    ),
    "ws_lambda_p": "our choice; the paper does not say",
    "ws_lambda_n": "our choice; the paper does not say",
    "updates_per_rollout": "our choice; the paper does not say",
}

PRESETS: dict[str, Preset] = {
    "cvpo": Preset(
        "length-adaptive GAE weighted by W_S and W_D",
        {},
        "CVPO paper; its settings are MegaCURL's defaults",
        _CVPO_SOURCES,
    ),
    "cvpo_stochasticity": Preset(
        "CVPO with the weight by value spread only (W_S)",
        {"use_w_d": False},
        "CVPO paper, ablation",
        _CVPO_SOURCES,
    ),
    "cvpo_curriculum": Preset(
        "CVPO with the weight by difficulty only (W_D)",
        {"use_w_s": False},
        "CVPO paper, ablation",
        _CVPO_SOURCES,
    ),
    "vapo": Preset(
        "length-adaptive GAE, Monte-Carlo critic targets, clip-higher, positive LM loss",
        {
            "length_adaptive_alpha": 0.05,
            "lam_critic": 1.0,
            "eps_clip": 0.2,
            "eps_clip_high": 0.28,
            "positive_lm_coef": 0.1,
            "critic_warmup_iters": 50,
            **_UNWEIGHTED,
        },
        "VAPO paper",
    ),
    "vc_ppo": Preset(
        "PPO with a pretrained critic and its own lambda of 1",
        {
            **_ONE_LAMBDA,
            "lam_policy": 0.95,
            "lam_critic": 1.0,
            "loss_agg_mode": "seq-mean-token-mean",
            "critic_warmup_iters": 100,
            **_PLAIN_LOSS,
            **_UNWEIGHTED,
        },
        "VC-PPO paper, second-hand",
        {
            "loss_agg_mode": "VAPO paper's description of the PPO it builds on",
            "positive_lm_coef": "VAPO added it later",
        },
    ),
    "ppo": Preset(
        "GAE with one lambda, whitened advantages, symmetric clip, value clip",
        {
            **_ONE_LAMBDA,
            "lam_policy": 0.95,
            "lam_critic": 0.95,
            "whiten_advantages": "sample",
            "value_clip": 0.2,
            "critic_warmup_iters": 0,
            **_PLAIN_LOSS,
            **_UNWEIGHTED,
        },
        "PPO paper, with the settings common in language-model trainers",
        {
            "whiten_advantages": "common practice (verl)",
        },
    ),
    "orz": Preset(
        "PPO with lambda 1, whitened advantages, rewards 1 and 0, many critic steps a rollout",
        {
            **_ONE_LAMBDA,
            "lam_policy": 1.0,
            "lam_critic": 1.0,
            "whiten_advantages": "population",
            "reward_correct": 1.0,
            "reward_wrong": 0.0,
            "reward_truncated": 0.0,
            "critic_updates_per_rollout": 12,
            "critic_warmup_iters": 0,
            **_PLAIN_LOSS,
            **_UNWEIGHTED,
        },
        "Open-Reasoner-Zero paper",
        {
            "whiten_advantages": "paper; the kind of variance from its code",
            "reward_truncated": "Open-Reasoner-Zero code",
        },
    ),
    "grpo": Preset(
        "rewards standardised within the group, no critic",
        {**_GROUP},
        "DeepSeekMath paper",
        _GROUP_SOURCES,
    ),
    "grpo_asyn": Preset(
        "GRPO on responses that are one step old, with truncated importance weights",
        {**_GROUP, "rollout_lag": 1, "rollout_correction": "decoupled"},
        "CVPO paper, which names it as a baseline",
        {
            **_GROUP_SOURCES,
            "rollout_correction": "decoupled PPO (AReaL); the CVPO paper does not say",
            "tis_cap": "common practice (verl, slime)",
        },
    ),
    "dr_grpo": Preset(
        "GRPO without division by the deviation or by the response length",
        {**_GROUP, "grpo_std": "none", "loss_agg_mode": "seq-mean-token-sum-norm"},
        "Dr. GRPO paper",
        {
            **_GROUP_SOURCES,
            "grpo_std": "Dr. GRPO paper",
            "loss_agg_mode": "Dr. GRPO paper; the length that divides from its code",
        },
    ),
    "rloo": Preset(
        "rewards against the mean of the other responses, no critic",
        {**_GROUP, "advantage_estimator": "rloo"},
        "RLOO paper",
        {
            **_GROUP_SOURCES,
            "loss_agg_mode": "as GRPO, so that only the baseline differs",
            "eps_clip": "as GRPO",
            "eps_clip_high": "as GRPO",
        },
    ),
    "dapo": Preset(
        "GRPO with clip-higher, token-level loss, dynamic sampling and overlong penalty",
        {
            **_GROUP,
            "eps_clip_high": 0.28,
            "loss_agg_mode": "token-mean",
            "overlong_penalty": 1.0,
            "sampling": "dynamic",
        },
        "DAPO paper",
        {
            **_GROUP_SOURCES,
            "dynamic_max_rounds": "DAPO code (verl)",
        },
    ),
    "vcrl": Preset(
        "GRPO on questions of high group variance, with replay",
        {**_GROUP, "reward_correct": 1.0, "reward_wrong": 0.0, "sampling": "vcrl"},
        "VCRL paper, second-hand",
        {
            **_GROUP_SOURCES,
            **dict.fromkeys(
                ("vcrl_kappa", "vcrl_kappa_switch", "vcrl_momentum", "vcrl_max_replays"),
                "VCRL paper, second-hand",
            ),
            "vcrl_beta": "our choice; no text we know defines it",
        },
    ),
    "gspo": Preset(
        "GRPO with the probability ratio of whole responses",
        {
            **_GROUP,
            "ratio_level": "sequence",
            "eps_clip": 3e-4,
            "eps_clip_high": 4e-4,
            "updates_per_rollout": 4,
        },
        "GSPO paper, as its implementations quote it",
        _GROUP_SOURCES,
    ),
}


def preset_values(name: str) -> dict[str, object]:
    """Return the overrides of preset ``name``, checked against the schema's types.

    Raises ConfigError for an unknown preset, naming the nearest, and for a preset that sets a field
    the schema does not have.
    """
    if name not in PRESETS:
        hint = nearest_hint(name, PRESETS)
        raise ConfigError(
            f"--algorithm {name!r} is no preset{hint}; choose one of {', '.join(PRESETS)}"
        )
    specs = field_specs()
    values: dict[str, object] = {}
    for key, value in PRESETS[name].overrides.items():
        if key not in specs or key == "algorithm":
            raise ConfigError(
                f"preset {name!r} sets {key!r}{nearest_hint(key, specs)}: no such field"
            )
        values[key] = convert(specs[key], value, f"preset {name!r}: {key}")
    return values


def touched_fields() -> list[str]:
    """Fields that some preset sets, in the schema's order: the numbers that make an algorithm."""
    return [key for key in field_specs() if any(key in p.overrides for p in PRESETS.values())]
