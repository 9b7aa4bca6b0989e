# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The output layer that log_prob.py measures, and how; imports torch alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from timing import Meter

ENTROPY_WEIGHT = 0.1  # of the loss whose gradient is taken

Compute = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(hidden, weight, targets) -> log-probs and entropies."""


@dataclass(frozen=True)
class Shape:
    """tokens, hidden size and vocabulary; ``chunk`` tokens at a time where there are chunks."""

    tokens: int
    hidden: int
    vocab: int
    chunk: int


@dataclass(frozen=True)
class Result:
    """(seconds, CPU seconds, MB) of the forward pass, and of it with backward; what came out."""

    forward: tuple[float, float, float]
    both: tuple[float, float, float]
    log_prob: Tensor
    entropy: Tensor
    grads: tuple[Tensor, ...]


def measure(compute: Compute, shape: Shape) -> Result:
    """Measure ``compute`` on inputs that are the same in every process.

    Memory is the peak beyond the inputs, and beyond the gradients that come out.
    """
    torch.manual_seed(0)
    hidden = torch.randn(shape.tokens, shape.hidden).requires_grad_()
    weight = (0.05 * torch.randn(shape.vocab, shape.hidden)).requires_grad_()
    targets = torch.randint(shape.vocab, (shape.tokens,))
    few, _ = compute(hidden[:8], weight, targets[:8])  # libraries and threads are there now
    torch.autograd.grad(few.sum(), (hidden, weight))
    meter = Meter()
    with torch.no_grad():
        compute(hidden, weight, targets)
    forward = meter.read()
    meter = Meter()
    log_prob, entropy = compute(hidden, weight, targets)
    loss = log_prob.sum() + ENTROPY_WEIGHT * entropy.sum()
    grads = torch.autograd.grad(loss, (hidden, weight))
    seconds, cpu, memory = meter.read()
    both = (seconds, cpu, memory - sum(g.nbytes for g in grads) / 2**20)
    return Result(forward, both, log_prob.detach(), entropy.detach(), grads)
