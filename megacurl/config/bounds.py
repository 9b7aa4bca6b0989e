# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The range of every numeric setting, as data: what one value may be whatever the others are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from megacurl.config.fields import flag_name


@dataclass(frozen=True)
class Bound:
    """An interval with open or closed ends; ``why`` is added to the message."""

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    why: str = ""

    def holds(self, value: float) -> bool:
        """Whether a finite ``value`` lies inside; NaN and infinity never do."""
        if not math.isfinite(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def words(self) -> str:
        """Say the interval: ``"above 0 and at most 1"``, or the one value that is allowed."""
        if self.low == self.high:
            return f"exactly {_plain(self.low)}"
        parts = []
        if self.low != -math.inf:
            parts.append(f"{'above' if self.low_open else 'at least'} {_plain(self.low)}")
        if self.high != math.inf:
            parts.append(f"{'below' if self.high_open else 'at most'} {_plain(self.high)}")
        return " and ".join(parts) or "finite"


_POSITIVE = Bound(0, low_open=True)
_NON_NEGATIVE = Bound(0)
_COUNT = Bound(1)
_FRACTION = Bound(0, 1)
_FINITE = Bound()
_BIASED = "truncated sampling makes the trainer's probability ratio wrong; use --eval-top-p in eval"
_SIGN = "the weight 1 - alpha could turn negative and flip the advantage's sign"

BOUNDS: dict[str, Bound] = {
    "make_vocab_size_divisible_by": _COUNT,
    "critic_head_init_std": _NON_NEGATIVE,
    "tensor_model_parallel_size": _COUNT,
    "pipeline_model_parallel_size": _COUNT,
    "num_layers_per_virtual_pipeline_stage": _COUNT,
    "recompute_num_layers": _COUNT,
    "distributed_timeout_minutes": _COUNT,
    "lr": _POSITIVE,
    "critic_lr": _POSITIVE,
    "min_lr": _NON_NEGATIVE,
    "lr_warmup_iters": _NON_NEGATIVE,
    "lr_decay_iters": _COUNT,
    "weight_decay": _NON_NEGATIVE,
    "adam_beta1": Bound(0, 1, high_open=True),
    "adam_beta2": Bound(0, 1, high_open=True),
    "adam_eps": _POSITIVE,
    "clip_grad": _NON_NEGATIVE,
    "train_iters": _COUNT,
    "rollout_batch_size": _COUNT,
    "n_samples_per_prompt": _COUNT,
    "global_batch_size": _COUNT,
    "critic_global_batch_size": _COUNT,
    "updates_per_rollout": _COUNT,
    "critic_updates_per_rollout": _COUNT,
    "ppo_epochs": _COUNT,
    "critic_epochs": _COUNT,
    "max_tokens_per_micro_batch": _COUNT,
    "log_prob_chunk_size": _COUNT,
    "seed": Bound(0, 2**32 - 1),
    "gamma": Bound(0, 1, low_open=True),
    "length_adaptive_alpha": _POSITIVE,
    "lam_policy": _FRACTION,
    "lam_critic": _FRACTION,
    "grpo_eps": _POSITIVE,
    "reward_correct": _FINITE,
    "reward_wrong": _FINITE,
    "reward_truncated": _FINITE,
    "overlong_penalty": _NON_NEGATIVE,
    "overlong_buffer": _COUNT,
    "tis_cap": _POSITIVE,
    "eps_clip": Bound(0, 1, low_open=True, high_open=True),
    "eps_clip_high": _POSITIVE,
    "dual_clip": Bound(1, low_open=True),
    "value_clip": _POSITIVE,
    "positive_lm_coef": _NON_NEGATIVE,
    "entropy_coef": _NON_NEGATIVE,
    "kl_coef": _NON_NEGATIVE,
    "critic_warmup_iters": _NON_NEGATIVE,
    "critic_warmup_min_iters": _NON_NEGATIVE,
    "critic_warmup_mse_below": _POSITIVE,
    "critic_warmup_ev_above": Bound(
        high=1, high_open=True, why="explained variance never is above 1"
    ),
    "variance_coefficient": _NON_NEGATIVE,
    "ws_alpha_p": _NON_NEGATIVE,
    "ws_alpha_n": Bound(0, 1, why=_SIGN),
    "ws_lambda_p": _POSITIVE,
    "ws_lambda_n": _POSITIVE,
    "wd_early": _FINITE,
    "wd_bottleneck": _FINITE,
    "wd_ema": Bound(0, 1, high_open=True, why="1 would never look at a new accuracy"),
    "beta_prior": _POSITIVE,
    "beta_decay": _FRACTION,
    "trend_frac": Bound(0, 1, low_open=True),
    "trend_low": _FRACTION,
    "trend_low_delta": _NON_NEGATIVE,
    "trend_high": _FRACTION,
    "trend_high_delta": _NON_NEGATIVE,
    "phase_patience": _COUNT,
    "phase_min_round": _NON_NEGATIVE,
    "dynamic_max_rounds": _COUNT,
    "vcrl_kappa": Bound(0, 1, high_open=True, why="no variance exceeds 1"),
    "vcrl_kappa_switch": _NON_NEGATIVE,
    "vcrl_momentum": _FRACTION,
    "vcrl_max_replays": _COUNT,
    "vcrl_bank_size": _COUNT,
    "correct_threshold": Bound(0, 1, low_open=True, why="a score of 0 is never correct"),
    "rollout_lag": Bound(0, 1, why="responses are at most one step old"),
    "rollout_temperature": _POSITIVE,
    "rollout_top_p": Bound(1, 1, why=_BIASED),
    "rollout_top_k": Bound(0, 0, why=_BIASED),
    "rollout_max_prompt_len": _COUNT,
    "rollout_max_response_len": _COUNT,
    "rollout_max_batch_size": _COUNT,
    "rollout_kv_cache_mb": _COUNT,
    "rollout_launch": _NON_NEGATIVE,
    "sync_bucket_mb": _COUNT,
    "eval_interval": _COUNT,
    "n_samples_per_eval_prompt": _COUNT,
    "eval_temperature": _NON_NEGATIVE,
    "eval_top_p": Bound(0, 1, low_open=True),
    "eval_max_response_len": _COUNT,
    "save_interval": _COUNT,
    "keep_checkpoints": _COUNT,
}


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:g}"


def bound_problems(values: Mapping[str, object]) -> Iterator[str]:
    """Yield a message for every number outside its bound; null values are skipped."""
    for name, bound in BOUNDS.items():
        value = values[name]
        numbers = value if isinstance(value, tuple) else (value,)
        if all(number is None or bound.holds(number) for number in numbers):
            continue
        shown = " ".join(map(str, numbers))
        why = f": {bound.why}" if bound.why else ""
        yield f"{flag_name(name)} {shown} must be {bound.words()}{why}"
