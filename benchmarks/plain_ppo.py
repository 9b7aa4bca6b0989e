# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One step of PPO with a critic in plain PyTorch and transformers: the yardstick of step.py.

It does what a careful script without a framework does: ``generate`` samples, responses are padded
on the right to one batch and go through the model in one forward pass, and logits are computed for
response tokens only. A causal model needs no attention mask then. With several processes torch's
DistributedDataParallel sums the gradients. Nothing here is MegaCURL's.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, AutoTokenizer

_ANSWER = re.compile(r"Answer: (-?\d+)")


@dataclass(frozen=True)
class PPOSettings:
    """Hyperparameters. Actor and critic take one optimizer step an epoch, on the whole rollout."""

    lr: float
    critic_lr: float
    gamma: float = 1.0
    lam: float = 1.0
    eps_clip: float = 0.2
    epochs: int = 1
    clip_grad: float = 1.0
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Response:
    """A sampled response with its prompt (token ids) and its reward."""

    prompt: Sequence[int]
    response: Sequence[int]
    reward: float

    @property
    def num_tokens(self) -> int:
        return len(self.prompt) + len(self.response)


@dataclass(frozen=True)
class PaddedBatch:
    """B rows padded on the right to L tokens, of which at most T are a response.

    tokens: int64 [B, L]. predicts: bool [B, L], the positions that predict a response token;
    targets: int64 [R], those tokens, row by row. mask: bool [B, T]. rewards: [B].
    """

    tokens: Tensor
    predicts: Tensor
    targets: Tensor
    mask: Tensor
    rewards: Tensor

    @classmethod
    def of(cls, responses: Sequence[Response], device: torch.device) -> PaddedBatch:
        """Pad ``responses``."""
        longest = max(r.num_tokens for r in responses)
        tokens = torch.zeros(len(responses), longest, dtype=torch.long)
        predicts = torch.zeros(len(responses), longest, dtype=torch.bool)
        for row, r in enumerate(responses):
            tokens[row, : r.num_tokens] = torch.tensor([*r.prompt, *r.response])
            predicts[row, len(r.prompt) - 1 : r.num_tokens - 1] = True
        lengths = torch.tensor([len(r.response) for r in responses])
        return cls(
            tokens=tokens.to(device),
            predicts=predicts.to(device),
            targets=tokens[predicts.roll(1, dims=1)].to(device),
            mask=(torch.arange(int(lengths.max())) < lengths[:, None]).to(device),
            rewards=torch.tensor([r.reward for r in responses], device=device),
        )


class Policy(nn.Module):
    """Log-probs [R] of the response tokens."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: PaddedBatch) -> Tensor:
        hidden = self.model.model(input_ids=batch.tokens, use_cache=False).last_hidden_state
        logits = self.model.lm_head(hidden[batch.predicts]).float()
        return -F.cross_entropy(logits, batch.targets, reduction="none")


class ValueModel(nn.Module):
    """Values [R] of the states before the response tokens; 0 everywhere at first."""

    def __init__(self, trunk: nn.Module, hidden_size: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(hidden_size, 1, bias=False)
        nn.init.zeros_(self.head.weight)

    def forward(self, batch: PaddedBatch) -> Tensor:
        hidden = self.trunk(input_ids=batch.tokens, use_cache=False).last_hidden_state
        values: Tensor = self.head(hidden[batch.predicts])[:, 0].float()
        return values


class PlainPPO:
    """Actor, critic and their optimizers; every process holds both and a part of the batch."""

    def __init__(
        self,
        folder: str | Path,
        settings: PPOSettings,
        device: torch.device,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Load the policy of ``folder``; the critic's trunk starts as a copy of it."""
        self.settings, self.device, self.clock = settings, device, clock
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.model.to(device)
        critic = ValueModel(copy.deepcopy(self.model.model), self.model.config.hidden_size)
        self.processes = dist.get_world_size() if dist.is_initialized() else 1
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.policy = self._wrap(Policy(self.model))
        self.critic = self._wrap(critic.to(device))
        self.policy_optimizer = self._optimizer(self.policy, settings.lr)
        self.critic_optimizer = self._optimizer(self.critic, settings.critic_lr)
        self.seconds: dict[str, float] = {}

    def _wrap(self, module: nn.Module) -> nn.Module:
        return DistributedDataParallel(module) if self.processes > 1 else module

    def _optimizer(self, module: nn.Module, lr: float) -> torch.optim.Optimizer:
        s = self.settings
        return torch.optim.AdamW(
            module.parameters(), lr=lr, betas=s.betas, eps=s.eps, weight_decay=s.weight_decay
        )

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the seconds of the body to ``self.seconds[phase]``."""
        start = self._now()
        yield
        self.seconds[phase] = self.seconds.get(phase, 0.0) + self._now() - start

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return self.clock()

    def step(self, responses: Sequence[Response], answers: Sequence[str]) -> dict[str, float]:
        """Sample as many and as long responses as ``responses``, then train on ``responses``.

        The work of a whole step, on a batch that another trainer can be given too. Collective.

        Args:
            responses: of all processes; this one takes every ``processes``-th.
            answers: the right answer to each, against which the sampled ones are judged.

        Returns:
            "policy_loss" and "value_loss" over all responses, and "policy_grad_norm" and
            "value_grad_norm" before clipping, means over the epochs. ``self.seconds`` has the
            time of the phases.
        """
        own = responses[self.rank :: self.processes]
        longest = max(len(r.response) for r in own)
        with self.timed("generate"):
            self.generate([r.prompt for r in own], answers[self.rank :: self.processes], longest)
        batch = PaddedBatch.of(own, self.device)
        with self.timed("log_prob"), torch.no_grad():
            values = self.critic(batch)
            # One optimizer step starts from the log-probs of its own forward pass.
            old = self.policy(batch) if self.settings.epochs > 1 else None
        advantages, returns = self.advantages(batch, values)
        with self.timed("train"):
            total = sum(len(r.response) for r in responses)
            epochs = range(self.settings.epochs)
            rows = [self._update(batch, old, advantages, returns, total) for _ in epochs]
        return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}

    @torch.no_grad()
    def generate(
        self, prompts: Sequence[Sequence[int]], answers: Sequence[str], length: int
    ) -> list[float]:
        """Sample a response of ``length`` tokens to each of ``prompts``; their rewards, +1 or -1.

        A batch goes on until its longest response has ended, so this is what it costs to sample
        responses of which the longest has ``length`` tokens.
        """
        inputs = self.tokenizer.pad({"input_ids": [list(p) for p in prompts]}, return_tensors="pt")
        output = self.model.generate(
            input_ids=inputs["input_ids"].to(self.device),
            attention_mask=inputs["attention_mask"].to(self.device),
            do_sample=True,
            top_k=0,
            min_new_tokens=length,
            max_new_tokens=length,
            pad_token_id=self.tokenizer.pad_token_id,
        )[:, inputs["input_ids"].shape[1] :]
        texts = self.tokenizer.batch_decode(output, skip_special_tokens=True)
        found = [_ANSWER.findall(text)[-1:] for text in texts]
        return [1.0 if f == [a] else -1.0 for f, a in zip(found, answers, strict=True)]

    def advantages(self, batch: PaddedBatch, values: Tensor) -> tuple[Tensor, Tensor]:
        """Whitened advantages and returns, both [R], from values [R]; collective."""
        rows = torch.zeros(batch.mask.shape, device=self.device)
        rows[batch.mask] = values
        last = batch.mask.sum(1) - 1
        advantage = torch.zeros_like(rows)
        next_value = next_advantage = torch.zeros(len(rows), device=self.device)
        for t in reversed(range(rows.shape[1])):
            reward = torch.where(last == t, batch.rewards, 0.0)
            delta = reward + self.settings.gamma * next_value - rows[:, t]
            next_advantage = delta + self.settings.gamma * self.settings.lam * next_advantage
            next_advantage = torch.where(batch.mask[:, t], next_advantage, 0.0)
            next_value = torch.where(batch.mask[:, t], rows[:, t], 0.0)
            advantage[:, t] = next_advantage
        flat = advantage[batch.mask]
        return self._whiten(flat), flat + values

    def _whiten(self, x: Tensor) -> Tensor:
        moments = torch.stack([x.sum(), x.square().sum(), x.new_tensor(len(x))]).double()
        if self.processes > 1:
            dist.all_reduce(moments)
        total, squares, count = moments.tolist()
        variance = (squares - total * total / count) / (count - 1)
        whitened: Tensor = (x - total / count) / (variance + 1e-8) ** 0.5
        return whitened

    def _update(
        self,
        batch: PaddedBatch,
        old: Tensor | None,
        advantages: Tensor,
        returns: Tensor,
        total: int,
    ) -> dict[str, float]:
        log_probs = self.policy(batch)
        ratio = torch.exp(log_probs - (log_probs.detach() if old is None else old))
        clipped = ratio.clamp(1 - self.settings.eps_clip, 1 + self.settings.eps_clip)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).sum() / total
        policy_norm = self._descend(self.policy, self.policy_optimizer, policy_loss)
        value_loss = 0.5 * (self.critic(batch) - returns).square().sum() / total
        value_norm = self._descend(self.critic, self.critic_optimizer, value_loss)
        losses = torch.stack([policy_loss.detach(), value_loss.detach()])
        if self.processes > 1:
            dist.all_reduce(losses)
        return {
            "policy_loss": losses[0].item(),
            "value_loss": losses[1].item(),
            "policy_grad_norm": policy_norm,
            "value_grad_norm": value_norm,
        }

    def _descend(self, module: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
        """One optimizer step; the global gradient norm before clipping."""
        optimizer.zero_grad()
        (loss * self.processes).backward()  # DistributedDataParallel averages; we want the sum
        norm = nn.utils.clip_grad_norm_(module.parameters(), self.settings.clip_grad)
        optimizer.step()
        return norm.item()
