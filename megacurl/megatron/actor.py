# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The policy: log-probs of a rollout, and the clipped update on weighted advantages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from megatron.core import parallel_state
from torch import Tensor

from megacurl.algorithms.aggregation import aggregate
from megacurl.algorithms.kl import kl_loss
from megacurl.algorithms.policy_loss import PolicyStats, policy_loss
from megacurl.algorithms.positive_lm import positive_lm_loss
from megacurl.config.schema import Config
from megacurl.megatron.groups import Grid
from megacurl.megatron.log_prob import vocab_parallel_log_prob
from megacurl.megatron.packing import PackedBatch
from megacurl.megatron.pipeline import forward_only
from megacurl.megatron.shard import MicroBatch, MiniBatch, Shard
from megacurl.megatron.trainable import Trainable
from megacurl.models.network import Network


@dataclass(frozen=True)
class LogProbs:
    """log_probs, entropy: fp32 [R] of the shard on the last stage; empty on the others."""

    log_probs: Tensor
    entropy: Tensor

    @classmethod
    def join(cls, parts: Sequence[tuple[Tensor, Tensor]], device: torch.device) -> LogProbs:
        """From those of the shard's micro-batches, in order."""
        empty = torch.empty(0, device=device)
        return cls(*(torch.cat([part[k] for part in parts] or [empty]) for k in (0, 1)))


@dataclass(frozen=True)
class ActorUpdate:
    """metrics: the same on every rank. old: log-probs and entropies before the update."""

    metrics: dict[str, float]
    old: LogProbs


class PolicyScorer:
    """Log-probs of a frozen policy: the reference model, and what the actor builds on."""

    def __init__(self, network: Network, config: Config, grid: Grid) -> None:
        self.network, self.config, self.grid = network, config, grid

    def _log_probs(self, hidden: Tensor, batch: PackedBatch) -> tuple[Tensor, Tensor]:
        """From the model's output [1, T, h]; differentiable."""
        return vocab_parallel_log_prob(
            hidden[0][batch.predict_index],
            self.network.head_weight,
            batch.targets,
            temperature=self.config.rollout.rollout_temperature,
            vocab_size=self.network.shape.vocab_size,
            chunk_size=self.config.training.log_prob_chunk_size,
            group=parallel_state.get_tensor_model_parallel_group(),
        )

    def log_probs(self, shard: Shard) -> LogProbs:
        """Log-probs and entropies of the shard's response tokens under the present weights."""
        with self.network.weights.in_use():
            parts = forward_only(self.network.chunks, shard.batches, self._log_probs)
        return LogProbs.join(parts, self.grid.device)


class Actor(PolicyScorer):
    """The policy that is trained."""

    def __init__(self, network: Network, config: Config, grid: Grid, total_steps: int) -> None:
        super().__init__(network, config, grid)
        self.trainable = Trainable(
            "actor",
            network,
            config.optimizer,
            config.parallel,
            lr=config.optimizer.lr,
            total_steps=total_steps,
        )

    def update(
        self,
        shard: Shard,
        old: LogProbs | None,
        advantages: Tensor,
        *,
        reference: LogProbs | None = None,
        weights: Tensor | None = None,
        token_weights: Tensor | None = None,
    ) -> ActorUpdate:
        """All optimizer steps on a rollout.

        Args:
            shard: the rank's share.
            old: log-probs that the clipped ratio starts from. None takes those of the update's
                own forward pass, which saves one; for a single optimizer step.
            advantages: [R] of the shard, weighted, on the last stage.
            reference: of the initial policy, for a KL term in the loss.
            weights: [B] W_S W_D, for a weighted positive LM loss.
            token_weights: [R] constant factors of the policy loss, for responses of older weights.

        Raises:
            ValueError: without ``old``, if there is more than one optimizer step.
        """
        steps = [
            mini_batch
            for epoch in range(self.config.training.ppo_epochs)
            for mini_batch in shard.mini_batches("actor", epoch)
        ]
        if old is None and len(steps) > 1:
            raise ValueError(f"{len(steps)} optimizer steps need the log-probs they start from")
        meter, measured = _ActorMeter(self.grid), old
        with self.trainable.in_use():
            for mini_batch in steps:
                if mini_batch.denominators.empty:
                    meter.skipped += 1
                    continue
                loss = _ActorLoss(
                    self, shard, mini_batch, old, advantages, reference, weights, token_weights
                )
                parts = self.trainable.accumulate(mini_batch.batches, loss)
                meter.add(parts, self.trainable.apply())
                if old is None:
                    measured = LogProbs.join([p.log_probs for p in parts], self.grid.device)
        if measured is None:  # every response is filtered out, so nothing went through the model
            measured = self.log_probs(shard)
        return ActorUpdate(meter.metrics(self.trainable.lr), measured)


@dataclass(frozen=True)
class _Part:
    """What is kept of a micro-batch. losses: [3]. log_probs: with entropies, [R] each."""

    stats: PolicyStats
    losses: Tensor
    log_probs: tuple[Tensor, Tensor]


@dataclass(frozen=True)
class _ActorLoss:
    """The loss of one micro-batch of a mini-batch, as a part of the mini-batch's global sum."""

    actor: Actor
    shard: Shard
    mini_batch: MiniBatch
    old: LogProbs | None
    advantages: Tensor
    reference: LogProbs | None
    weights: Tensor | None
    token_weights: Tensor | None

    def __call__(self, hidden: Tensor, batch: PackedBatch, number: int) -> tuple[Tensor, _Part]:
        micro = self.mini_batch.micro_batches[number]
        algorithm = self.actor.config.algorithm
        log_probs, entropy = self.actor._log_probs(hidden, batch)
        mask = self.shard.mask[micro.tokens]
        coefficients = self.shard.coefficients(micro, self.mini_batch.denominators)
        policy, stats = policy_loss(
            log_probs,
            log_probs.detach() if self.old is None else self.old.log_probs[micro.tokens],
            self.advantages[micro.tokens],
            mask,
            coefficients,
            eps_clip=algorithm.eps_clip,
            eps_clip_high=algorithm.eps_clip_high,
            dual_clip=algorithm.dual_clip,
            sequences=micro.batch.cu_seqlens if algorithm.ratio_level == "sequence" else None,
            token_weights=(
                None if self.token_weights is None else self.token_weights[micro.tokens]
            ),
        )
        positive = self._positive_lm(log_probs, mask, micro)
        loss = policy + algorithm.positive_lm_coef * positive
        if algorithm.entropy_coef:
            loss = loss - algorithm.entropy_coef * aggregate(entropy, mask, coefficients)
        if self.reference is not None and algorithm.kl_placement == "loss":
            reference = self.reference.log_probs[micro.tokens]
            penalty = kl_loss(
                log_probs, reference, mask, coefficients, estimator=algorithm.kl_estimator
            )
            loss = loss + algorithm.kl_coef * penalty
        losses = torch.stack([loss.detach(), policy.detach(), positive.detach()])
        return loss, _Part(stats, losses, (log_probs.detach(), entropy.detach()))

    def _positive_lm(self, log_probs: Tensor, mask: Tensor, micro: MicroBatch) -> Tensor:
        return positive_lm_loss(
            log_probs,
            mask,
            self.shard.correct[micro.responses],
            micro.batch.cu_seqlens,
            correct_tokens=self.mini_batch.denominators.correct_tokens,
            weights=None if self.weights is None else self.weights[micro.responses],
        )


class _ActorMeter:
    """Statistics of a rollout's optimizer steps, reduced over the ranks step by step."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.skipped = 0
        self.losses: list[list[float]] = []
        self.grad_norms: list[float] = []
        self.clipped = self.kl = self.tokens = 0.0
        self.first_ratio_gap: float | None = None

    def add(self, parts: list[_Part], grad_norm: float) -> None:
        sums = torch.zeros(6, dtype=torch.float64, device=self.grid.device)
        gap = torch.zeros(1, device=self.grid.device)
        for part in parts:
            stats = part.stats
            counts = torch.stack([stats.clipped, stats.approx_kl, stats.tokens]).double()
            sums += torch.cat([part.losses.double(), counts])
            gap = torch.maximum(gap, stats.max_ratio_gap.float())
        totals = self.grid.sum_over_owners(sums).tolist()
        if self.first_ratio_gap is None:
            self.first_ratio_gap = self.grid.max_over_owners(gap).item()
        self.losses.append(totals[:3])
        self.clipped += totals[3]
        self.kl += totals[4]
        self.tokens += totals[5]
        self.grad_norms.append(grad_norm)

    def metrics(self, lr: float) -> dict[str, float]:
        metrics: dict[str, float] = {"data/skipped_batches": self.skipped}
        if not self.losses:
            return metrics
        steps = len(self.losses)
        for i, name in enumerate(("loss", "policy_loss", "positive_lm_loss")):
            metrics[f"actor/{name}"] = sum(row[i] for row in self.losses) / steps
        metrics["actor/grad_norm"] = sum(self.grad_norms) / steps
        metrics["actor/ratio_dev_first"] = self.first_ratio_gap or 0.0
        metrics["actor/clip_fraction"] = self.clipped / max(self.tokens, 1)
        metrics["actor/approx_kl"] = self.kl / max(self.tokens, 1)
        metrics["actor/lr"] = lr
        return metrics
