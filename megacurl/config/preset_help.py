# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl train --help-algorithm NAME``: a preset's numbers, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping

from megacurl.config.estimation import CRITIC_ONLY, RULE_ONLY
from megacurl.config.fields import field_specs, flag_name
from megacurl.config.presets import PRESETS, Preset, preset_values, touched_fields

# Where a number comes from that a preset leaves at its default.
_DEFAULTS = {
    "sampling": "every question counts",
    "use_critic": "the estimator needs one",
    "advantage_estimator": "GAE paper",
    "gamma": "every source",
    "rollout_lag": "on-policy",
    "reward_correct": "CVPO, VAPO, DAPO papers",
    "reward_wrong": "CVPO, VAPO, DAPO papers",
    "ratio_level": "PPO paper",
    "loss_agg_mode": "VAPO paper, Eq. 7",
    "whiten_advantages": "no source mentions it",
    "kl_coef": "no penalty; this flag turns one on",
    "updates_per_rollout": "one step a rollout, strictly on-policy",
    "grpo_eps": "common practice (verl, slime)",
}
_ALWAYS = (
    "dynamic_max_rounds",
    "gamma",
    "grpo_eps",
    "kl_coef",
    "tis_cap",
    "variance_coefficient",
    "vcrl_beta",
    "vcrl_kappa",
    "vcrl_kappa_switch",
    "vcrl_max_replays",
    "vcrl_momentum",
    "wd_bottleneck",
    "wd_early",
    "ws_lambda_n",
    "ws_lambda_p",
)
_PARTS = ("positive_lm_coef", "use_w_s", "use_w_d", "overlong_penalty")


def preset_help(name: str) -> str:
    """Return the text for preset ``name``; ConfigError, naming the nearest, if there is none."""
    overrides, preset = preset_values(name), PRESETS[name]
    values = {key: spec.default for key, spec in field_specs().items()} | overrides
    shown = {*touched_fields(), *_ALWAYS} - _unread(values)
    rows = [
        (f"{flag_name(key)} {_text(value)}", _source(preset, key, value))
        for key, value in values.items()
        if key in shown and not (value is None and key not in overrides)
    ]
    width = max(len(setting) for setting, _ in rows)
    lines = [f"{name}: {preset.summary}", f"Source: {preset.source}", ""]
    lines += [f"  {setting.ljust(width)}  {source}" for setting, source in rows]
    return "\n".join(
        [*lines, "", "Any flag replaces a number; docs/algorithms.md has the formulas."]
    )


def _unread(values: Mapping[str, object]) -> set[str]:
    """Settings that an algorithm with these values does not look at."""
    unread: set[str] = set()
    if not values["use_critic"]:
        unread |= set(CRITIC_ONLY)
    if values["rollout_correction"] == "auto":
        unread |= {"tis_cap", "rollout_correction"}
    if values["length_adaptive_alpha"] is not None:
        unread |= {"lam_policy"}
    if values["advantage_estimator"] != "gae":
        unread |= {"gamma"}
    if values["advantage_estimator"] != "grpo":
        unread |= {"grpo_std", "grpo_eps"}
    if values["grpo_std"] == "none":
        unread |= {"grpo_eps"}
    if not values["use_w_s"]:
        unread |= {"variance_coefficient", "ws_lambda_p", "ws_lambda_n"}
    if not values["use_w_d"]:
        unread |= {"wd_early", "wd_bottleneck"}
    for rule, options in RULE_ONLY.items():
        if values["sampling"] != rule:
            unread |= set(options)
    if not values["kl_coef"] and values["kl_placement"] == "reward":
        unread |= {"kl_estimator", "kl_placement"}
    return unread


def _source(preset: Preset, key: str, value: object) -> str:
    if key in _PARTS and not value:
        return "not part of it"
    if key in preset.sources:
        return preset.sources[key]
    return preset.source if key in preset.overrides else _DEFAULTS.get(key, "default")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)
