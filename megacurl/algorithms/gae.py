# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Generalised advantage estimation over packed sequences, and VAPO's length-adaptive lambda.

With delta_t = r_t + gamma V_next(t) - V_t the advantage is A_t = delta_t + gamma lam A_next(t)
(CVPO paper Eq. 2), where next(t) is the next *valid* token: a gap of tool output adds no decay.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from megacurl.algorithms.packed import (
    check_packed,
    check_per_sequence,
    last_valid_index,
    latest_valid_index,
    segment_ids,
    select,
    valid_lengths,
)
from megacurl.ops import usable

MaskedReward = Literal["error", "drop", "carry"]


def place_outcome(outcome: Tensor, mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Put every trajectory's scalar reward on its last valid token (VAPO: the terminal action).

    Args:
        outcome: ``[B]`` rewards; that of a trajectory without a valid token goes nowhere.
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.

    Returns:
        ``[T]`` token rewards in ``outcome``'s dtype, 0 everywhere else.
    """
    check_packed(mask, cu_seqlens)
    check_per_sequence(cu_seqlens, outcome=outcome)
    last = last_valid_index(mask, cu_seqlens)
    present = last >= 0
    rewards = torch.zeros(mask.shape, dtype=outcome.dtype, device=mask.device)
    rewards[last[present]] = outcome[present]
    return rewards


def length_adaptive_lambda(lengths: Tensor, alpha: float) -> Tensor:
    """Return lambda = 1 - 1/(alpha l) clamped to [0, 1] (VAPO), float64 ``[B]``.

    Args:
        lengths: valid tokens l of each trajectory; l = 0 gives 0.
        alpha: length coefficient, 0.05 in VAPO and 0.17 in CVPO.
    """
    if not alpha > 0:
        raise ValueError(f"length_adaptive_alpha is {alpha}; it must be positive")
    scaled = alpha * lengths.double()
    return torch.where(scaled > 1, 1 - 1 / scaled.clamp(min=1), 0.0)


def gae(
    values: Tensor,
    rewards: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    *,
    gamma: float,
    lam: float | Tensor,
    bootstrap: Tensor | None = None,
    masked_reward: MaskedReward = "error",
) -> tuple[Tensor, Tensor]:
    """Return advantages and returns (advantage + value), both ``[T]`` and 0 at masked tokens.

    Args:
        values: ``[T]``; V of the state before token t. Not differentiated.
        rewards: ``[T]`` token rewards.
        mask: bool ``[T]``.
        cu_seqlens: ``[B+1]``.
        gamma: discount in [0, 1].
        lam: lambda in [0, 1], one number or one a trajectory ``[B]``.
        bootstrap: ``[B]`` value after each trajectory's last valid token; None means 0 (terminal).
        masked_reward: what a reward on a masked token does: ``error``, ``drop``, or ``carry`` it to
            the valid token before. A non-finite number there is garbage, not a reward.

    Raises:
        ValueError: for a malformed layout, gamma or lam outside [0, 1], or a stray reward.
    """
    return decoupled_gae(
        values,
        rewards,
        mask,
        cu_seqlens,
        gamma=gamma,
        lam_policy=lam,
        lam_critic=lam,
        bootstrap=bootstrap,
        masked_reward=masked_reward,
    )


def decoupled_gae(
    values: Tensor,
    rewards: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    *,
    gamma: float,
    lam_policy: float | Tensor,
    lam_critic: float | Tensor,
    bootstrap: Tensor | None = None,
    masked_reward: MaskedReward = "error",
) -> tuple[Tensor, Tensor]:
    """Return advantages for ``lam_policy`` and returns for ``lam_critic`` (VAPO, VC-PPO).

    Arguments and errors are those of :func:`gae`; the compiled operator does both in one pass.
    """
    check_packed(mask, cu_seqlens, values=values, rewards=rewards)
    policy = _per_sequence_lambda(lam_policy, cu_seqlens)
    critic = policy if lam_critic is lam_policy else _per_sequence_lambda(lam_critic, cu_seqlens)
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma is {gamma}; it must lie in [0, 1]")
    if bootstrap is not None:
        check_per_sequence(cu_seqlens, bootstrap=bootstrap)
        bootstrap = bootstrap.detach().to(values.dtype)
    values = values.detach()
    rewards = resolve_masked_reward(rewards, mask, cu_seqlens, masked_reward).to(values.dtype)
    if usable(values, rewards, bootstrap):
        advantages, returns = torch.ops.megacurl.gae(
            values.contiguous(),
            rewards.detach().contiguous(),
            mask.contiguous(),
            cu_seqlens.contiguous(),
            policy,
            critic,
            gamma,
            None if bootstrap is None else bootstrap.contiguous(),
        )
        return advantages, returns
    advantages, returns = _reference(values, rewards, mask, cu_seqlens, gamma, policy, bootstrap)
    if critic is not policy:
        _, returns = _reference(values, rewards, mask, cu_seqlens, gamma, critic, bootstrap)
    return advantages, returns


def _reference(
    values: Tensor,
    rewards: Tensor,
    mask: Tensor,
    cu_seqlens: Tensor,
    gamma: float,
    lam: Tensor,
    bootstrap: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Advantages and returns for one lambda a trajectory, in plain PyTorch."""
    lengths = valid_lengths(mask, cu_seqlens)
    valid = mask.nonzero().squeeze(1)  # gaps vanish here, so "next valid" becomes "next"
    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    segments = segment_ids(ends, valid.numel())
    v = values[valid]
    after_last = torch.zeros_like(v[:1])
    next_v = torch.cat((v[1:], after_last))
    is_last = torch.ones_like(segments, dtype=torch.bool)
    is_last[:-1] = segments[:-1] != segments[1:]
    if bootstrap is None:
        next_v = torch.where(is_last, after_last, next_v)
    else:
        next_v = torch.where(is_last, bootstrap[segments], next_v)
    deltas = rewards[valid] + gamma * next_v - v

    longest = int(lengths.max()) if lengths.numel() else 0
    advantages = torch.zeros_like(values, requires_grad=False)
    returns = torch.zeros_like(advantages)
    compact = _discounted_suffix_sum(deltas, segments, gamma * lam, longest)
    advantages[valid] = compact
    returns[valid] = compact + v
    return advantages, returns


def resolve_masked_reward(
    rewards: Tensor, mask: Tensor, cu_seqlens: Tensor, mode: MaskedReward
) -> Tensor:
    """Return token rewards ``[T]`` that are 0 at masked tokens, treating stray ones by ``mode``."""
    kept = select(rewards, mask)
    if mode == "drop":
        return kept
    if mode not in ("error", "carry"):
        raise ValueError(f"masked_reward is {mode!r}; use 'error', 'drop' or 'carry'")
    stray = (~mask & rewards.isfinite() & (rewards != 0)).nonzero().squeeze(1)
    if stray.numel() == 0:
        return kept
    first = int(stray[0])
    if mode == "error":
        raise ValueError(
            f"rewards[{first}] is {float(rewards[first])} on a token that the policy did not "
            "sample; put it on a sampled token, or set masked_reward to 'drop' or 'carry'"
        )
    target = latest_valid_index(mask, cu_seqlens)[stray]
    if bool((target < 0).any()):
        lost = int(stray[target < 0][0])
        raise ValueError(
            f"rewards[{lost}] is {float(rewards[lost])} but its sequence has no sampled token "
            "before it to carry the reward to; set masked_reward to 'drop'"
        )
    return kept.index_add(0, target, rewards[stray])


def _per_sequence_lambda(lam: float | Tensor, cu_seqlens: Tensor) -> Tensor:
    if isinstance(lam, Tensor):
        check_per_sequence(cu_seqlens, lam=lam)
        in_range = bool(((lam >= 0) & (lam <= 1)).all())
        per_sequence = lam.detach().double()
    else:
        in_range = 0 <= lam <= 1
        shape = (cu_seqlens.numel() - 1,)
        per_sequence = torch.full(shape, lam, dtype=torch.float64, device=cu_seqlens.device)
    if not in_range:
        raise ValueError(f"lam is {lam}; it must lie in [0, 1]")
    return per_sequence


def _discounted_suffix_sum(
    x: Tensor, segments: Tensor, decay: Tensor, longest_segment: int
) -> Tensor:
    """Return S_t = x_t + decay S_{t+1} within each segment, in log2(longest) vectorised passes.

    After the pass with reach d, S_t holds the terms of tokens t .. t+2d-1; adding decay^d S_{t+d}
    doubles the reach. Powers are squared in float64: in float32 decay^4096 would be off by 1e-4.
    """
    total = x.clone()
    power = decay
    reach = 1
    while reach < longest_segment:
        same = segments[:-reach] == segments[reach:]
        carried = power.to(x.dtype)[segments[:-reach]] * total[reach:]
        total[:-reach] += select(carried, same)
        power = power * power
        reach *= 2
    return total
