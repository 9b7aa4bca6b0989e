# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which function computes which golden quantity."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.algorithms.golden_advantages import (
    run_cvpo_advantages,
    run_decoupled_gae,
    run_gae,
    run_group_means,
    run_kl_in_reward,
    run_length_adaptive_lambda,
    run_orz_advantages,
    run_overlong_filter,
    run_value_std,
    run_vapo_advantages,
    run_w_s,
    run_w_s_batch,
    run_whiten,
)
from tests.algorithms.golden_curriculum import (
    run_beta_tracker,
    run_curriculum,
    run_phase_switch,
    run_stagnation,
    run_w_d,
    run_w_d_peak,
)
from tests.algorithms.golden_groups import (
    run_async_policy_loss,
    run_dynamic_sampling_fill,
    run_dynamic_sampling_keep,
    run_group_train_step,
    run_grpo_advantages,
    run_gspo_loss,
    run_is_weights,
    run_overlong_penalty,
    run_rloo_advantages,
    run_vcrl,
    run_vcrl_kappa,
    run_vcrl_keep,
    run_vcrl_p,
    run_vcrl_p_binary,
)
from tests.algorithms.golden_losses import (
    run_aggregate,
    run_entropy,
    run_explained_variance,
    run_kl_estimate,
    run_kl_loss,
    run_logp_and_grad,
    run_positive_lm_loss,
    run_ppo_policy_loss,
    run_ppo_policy_loss_micro,
    run_value_loss,
    run_value_pretrain_done,
)
from tests.algorithms.golden_support import Inputs, Outputs
from tests.algorithms.golden_train_step import run_train_step

Handler = Callable[[Inputs, torch.dtype], Outputs]

HANDLERS: dict[str, Handler] = {
    "gae": run_gae,
    "length_adaptive_lambda": run_length_adaptive_lambda,
    "vapo_advantages": run_vapo_advantages,
    "decoupled_gae": run_decoupled_gae,
    "orz_advantages": run_orz_advantages,
    "kl_in_reward": run_kl_in_reward,
    "value_std": run_value_std,
    "group_means": run_group_means,
    "w_s_batch": run_w_s_batch,
    "w_s": run_w_s,
    "w_d": run_w_d,
    "w_d_peak": run_w_d_peak,
    "beta_tracker": run_beta_tracker,
    "stagnation": run_stagnation,
    "phase_switch": run_phase_switch,
    "curriculum_run": run_curriculum,
    "cvpo_advantages": run_cvpo_advantages,
    "ppo_policy_loss": run_ppo_policy_loss,
    "ppo_policy_loss_micro": run_ppo_policy_loss_micro,
    "aggregate": run_aggregate,
    "value_loss": run_value_loss,
    "kl_estimate": run_kl_estimate,
    "kl_loss": run_kl_loss,
    "entropy_from_logits": run_entropy,
    "logp_and_grad": run_logp_and_grad,
    "positive_lm_loss": run_positive_lm_loss,
    "whiten": run_whiten,
    "explained_variance": run_explained_variance,
    "value_pretrain_done": run_value_pretrain_done,
    "overlong_filter": run_overlong_filter,
    "train_step:vapo": run_train_step,
    "train_step:cvpo": run_train_step,
    "train_step:vc_ppo": run_train_step,
    "train_step:ppo": run_train_step,
    "train_step:orz": run_train_step,
    "train_step:grpo": run_group_train_step,
    "train_step:dr_grpo": run_group_train_step,
    "grpo_advantages": run_grpo_advantages,
    "rloo_advantages": run_rloo_advantages,
    "gspo_loss": run_gspo_loss,
    "gspo_token_loss": run_gspo_loss,
    "is_weights": run_is_weights,
    "async_policy_loss": run_async_policy_loss,
    "overlong_penalty": run_overlong_penalty,
    "dynamic_sampling_keep": run_dynamic_sampling_keep,
    "dynamic_sampling_fill": run_dynamic_sampling_fill,
    "vcrl_p_binary": run_vcrl_p_binary,
    "vcrl_p": run_vcrl_p,
    "vcrl_keep": run_vcrl_keep,
    "vcrl_kappa": run_vcrl_kappa,
    "vcrl_run": run_vcrl,
}
