# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Contradictions among the settings of advantages, and settings that a run would not use."""

from __future__ import annotations

from collections.abc import Iterator

from megacurl.config.batches import rollout_correction
from megacurl.config.fields import field_specs, flag_name, flatten
from megacurl.config.presets import PRESETS, preset_values
from megacurl.config.schema import Config

# Settings that only a critic, or an advantage made from its values, reads.
CRITIC_ONLY = (
    "critic_hf_checkpoint",
    "critic_head_init_std",
    "critic_lr",
    "critic_global_batch_size",
    "critic_updates_per_rollout",
    "critic_epochs",
    "length_adaptive_alpha",
    "lam_policy",
    "lam_critic",
    "value_clip",
    "critic_warmup_iters",
    "critic_warmup_stop",
    "critic_warmup_min_iters",
    "critic_warmup_mse_below",
    "critic_warmup_ev_above",
    "variance_coefficient",
    "ws_alpha_p",
    "ws_alpha_n",
    "ws_lambda_p",
    "ws_lambda_n",
    "ws_outcome",
    "ws_direction",
    "ws_stat",
    "ws_ddof",
    "ws_mu",
    "ws_scale",
)
_GRPO_ONLY = ("grpo_std", "grpo_eps")
RULE_ONLY = {
    "dynamic": ("dynamic_max_rounds",),
    "vcrl": (
        "vcrl_kappa",
        "vcrl_kappa_switch",
        "vcrl_momentum",
        "vcrl_max_replays",
        "vcrl_beta",
        "vcrl_bank_size",
    ),
}


def no_critic_problems(config: Config) -> Iterator[str]:
    """What a run without a critic cannot do, and settings of the critic that would do nothing."""
    if config.algorithm.use_critic:
        return
    if config.cvpo.use_w_s:
        yield (
            "--use-w-s weighs responses by the spread of a critic's values, and there is no "
            "critic; give --no-use-w-s or --use-critic"
        )
    if config.algorithm.truncation == "bootstrap":
        yield (
            "--truncation bootstrap takes a critic's value of the end of a response, and there is "
            "no critic; give --truncation terminal or --use-critic"
        )
    for name, shown in _changed(config, CRITIC_ONLY):
        yield (
            f"{flag_name(name)} {shown} has no effect: --algorithm {config.algorithm.algorithm} "
            "trains no critic here; leave it out, or give --use-critic"
        )


def estimator_problems(config: Config) -> Iterator[str]:
    """Contradictions of the ratio, the overlong penalty and the estimator's options."""
    algorithm, limit = config.algorithm, config.rollout.rollout_max_response_len
    if algorithm.ratio_level == "sequence" and algorithm.loss_agg_mode != "seq-mean-token-mean":
        yield (
            f"--ratio-level sequence with --loss-agg-mode {algorithm.loss_agg_mode} would count a "
            "response by its length; use --loss-agg-mode seq-mean-token-mean (GSPO)"
        )
    if algorithm.overlong_buffer is not None and not algorithm.overlong_penalty:
        yield (
            f"--overlong-buffer {algorithm.overlong_buffer} has no effect with --overlong-penalty "
            "0; raise that or leave the buffer out"
        )
    if algorithm.overlong_buffer is not None and algorithm.overlong_buffer > limit:
        yield (
            f"--overlong-buffer {algorithm.overlong_buffer} must be at most "
            f"--rollout-max-response-len {limit}"
        )
    if rollout_correction(config) != "decoupled":
        for name, shown in _changed(config, ("tis_cap",)):
            yield (
                f"{flag_name(name)} {shown} has no effect with --rollout-correction "
                f"{rollout_correction(config)}; leave it out, or use decoupled"
            )
    if algorithm.advantage_estimator == "grpo":
        return
    for name, shown in _changed(config, _GRPO_ONLY):
        yield (
            f"{flag_name(name)} {shown} has no effect with --advantage-estimator "
            f"{algorithm.advantage_estimator}; leave it out, or use grpo"
        )


def sampling_problems(config: Config) -> Iterator[str]:
    """Options of a sampling rule that is not the chosen one, and rules without a rollout."""
    rule, replayed = config.sampling.sampling, config.rollout.replay_rollouts
    for other, names in RULE_ONLY.items():
        if other == rule:
            continue
        for name, shown in _changed(config, names):
            value = " ".join(map(str, shown)) if isinstance(shown, tuple) else shown
            yield (
                f"{flag_name(name)} {value} has no effect with --sampling {rule}; leave it out, "
                f"or use --sampling {other}"
            )
    if replayed is not None and rule != "uniform":
        yield (
            f"--replay-rollouts {replayed} with --sampling {rule}: a replay has its questions "
            "already; use --sampling uniform"
        )


def _changed(config: Config, names: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Settings that are neither the default nor the preset's: someone meant them to count."""
    values, chosen = flatten(config), config.algorithm.algorithm
    preset = preset_values(chosen) if chosen in PRESETS else {}
    for name in names:
        default = field_specs()[name].default
        if values[name] not in (default, preset.get(name, default)):
            yield name, values[name]
