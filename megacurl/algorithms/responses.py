# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What an advantage estimator sees: this rank's responses, and the rewards of the whole rollout."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.algorithms.gae import place_outcome
from megacurl.algorithms.packed import expand, select


@dataclass(frozen=True)
class Responses:
    """B packed responses of a rollout of N. What is None the run does not have.

    Rewards and groups are those of all N responses, so that a group is complete although its
    responses are dealt to different ranks.
    """

    mask: Tensor
    """bool ``[T]``, after :func:`~megacurl.algorithms.truncation.overlong_filter` if used."""
    cu_seqlens: Tensor
    """``[B+1]``."""
    index: Tensor
    """int ``[B]``, each response's place among the N."""
    rewards: Tensor
    """``[N]``; its dtype is that of the advantages."""
    group: Tensor
    """int ``[N]``, index of the question."""
    values: Tensor | None = None
    """``[T]`` of the critic at rollout time."""
    truncated: Tensor | None = None
    """bool ``[B]``, cut by the length limit."""
    end_values: Tensor | None = None
    """``[B]`` values after the last token."""
    kl_penalty: Tensor | None = None
    """``[T]`` to subtract from the token rewards (``kl_placement='reward'``)."""

    def token_rewards(self) -> Tensor:
        """``[T]``: the reward on the last valid token of each response, less the KL penalty."""
        rewards = place_outcome(self.rewards[self.index], self.mask, self.cu_seqlens)
        if self.kl_penalty is not None:
            rewards = torch.where(self.mask, rewards - self.kl_penalty, rewards)
        return rewards

    def on_every_token(self, per_response: Tensor) -> Tensor:
        """Spread one number a response, ``[N]``, over this rank's valid tokens, ``[T]``."""
        own = per_response[self.index].to(self.rewards.dtype)
        return select(expand(own, self.cu_seqlens, self.mask.numel()), self.mask)
