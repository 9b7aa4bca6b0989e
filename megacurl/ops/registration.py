# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Shapes and gradients of the operators, for tracing (torch.compile) and autograd."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_STATS = {"policy_loss": 11, "value_loss": 8}


def register(namespace: str) -> None:
    """Register fake implementations and gradients of the operators in ``namespace``."""
    for name, fake in (
        ("value_stats", _value_stats),
        ("group_mean", _group_mean),
        ("gae", _gae),
        ("cvpo_weights", _cvpo_weights),
        ("apply_weights", _apply_weights),
        ("policy_loss", _loss("policy_loss")),
        ("value_loss", _loss("value_loss")),
        ("log_prob_sums", _log_prob_sums),
        ("log_prob_grad", _log_prob_grad),
    ):
        torch.library.register_fake(f"{namespace}::{name}")(fake)
    for name in _STATS:
        torch.library.register_autograd(
            f"{namespace}::{name}", _backward, setup_context=_keep_gradient
        )


def _value_stats(values: Tensor, mask: Tensor | None, cu_seqlens: Tensor) -> tuple[Tensor, ...]:
    return _vectors(values, cu_seqlens.shape[0] - 1, 3)


def _group_mean(x: Tensor, include: Tensor | None, offsets: Tensor) -> tuple[Tensor, ...]:
    return _vectors(x, offsets.shape[0] - 1, 2)


def _gae(values: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    result = values.new_empty(values.shape, dtype=torch.float32)
    return result, torch.empty_like(result)


def _cvpo_weights(
    spread: Tensor,
    mean_spread: Tensor,
    correct: Tensor,
    accuracy: Tensor | None,
    advantages: Tensor | None,
    *_: Any,
) -> tuple[Tensor, ...]:
    tokens = 0 if advantages is None else advantages.shape[0]
    weighted = spread.new_empty((tokens,), dtype=torch.float32)
    return *_vectors(spread, spread.shape[0], 2), weighted


def _apply_weights(advantages: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(advantages)


def _loss(name: str) -> Any:
    def fake(predictions: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
        stats = predictions.new_empty((_STATS[name],), dtype=torch.float64)
        return predictions.new_empty(()), stats, torch.empty_like(predictions)

    return fake


def _log_prob_sums(logits: Tensor, *_: Any) -> Tensor:
    return logits.new_empty((4, logits.shape[0]), dtype=torch.float32)


def _log_prob_grad(logits: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(logits)


def _vectors(like: Tensor, length: Any, count: int) -> tuple[Tensor, ...]:
    return tuple(like.new_empty((length,), dtype=torch.float64) for _ in range(count))


def _keep_gradient(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    # The forward pass has computed d loss / d prediction already.
    _, stats, grad = output
    ctx.mark_non_differentiable(stats, grad)
    ctx.save_for_backward(grad)
    ctx.num_inputs = len(inputs)


def _backward(ctx: Any, loss_grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    (grad,) = ctx.saved_tensors
    return (grad * loss_grad, *[None] * (ctx.num_inputs - 1))
