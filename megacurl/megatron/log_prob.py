# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Log-probs and entropy straight from hidden states, the vocabulary split over the TP ranks.

The logits of a response never exist as a whole: they are computed for a chunk of tokens at a time,
in forward and again in backward, so memory is [chunk, V / TP] and not [tokens, V / TP].
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from megacurl.algorithms.softmax_parts import softmax_grad, softmax_sums


class _VocabParallelLogProb(torch.autograd.Function):
    """log softmax(h W^T / temperature)[target] and the entropy of that distribution."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: float,
        vocab_size: int,
        chunk_size: int,
        group: Any,
    ) -> tuple[Tensor, Tensor]:
        first = dist.get_rank(group) * weight.shape[0]
        ctx.layout = (temperature, chunk_size, first, min(weight.shape[0], vocab_size - first))
        ctx.group = group
        log_probs, entropies, normalizers = [], [], []
        for start in range(0, hidden.shape[0], chunk_size):
            piece = slice(start, start + chunk_size)
            logits = _logits(hidden[piece], weight, ctx.layout)
            own_top, own_sum, own_weighted, picked = softmax_sums(
                logits, targets[piece] - first, temperature
            ).unbind()
            top = own_top.clone()
            dist.all_reduce(top, op=dist.ReduceOp.MAX, group=group)
            shift = own_top - top
            scale = torch.exp(shift)
            sums = torch.stack([scale * own_sum, scale * (own_weighted + shift * own_sum), picked])
            dist.all_reduce(sums, group=group)
            log_sum = torch.log(sums[0])
            log_probs.append(sums[2] - (top + log_sum))
            entropies.append(log_sum - sums[1] / sums[0])
            normalizers.append(top + log_sum)
        log_prob, entropy, normalizer = (
            torch.cat(parts) if parts else hidden.new_empty(0, dtype=torch.float32)
            for parts in (log_probs, entropies, normalizers)
        )
        ctx.save_for_backward(hidden, weight, targets, normalizer, entropy)
        return log_prob, entropy

    @staticmethod
    def backward(ctx: Any, grad_log_prob: Tensor, grad_entropy: Tensor) -> Any:
        hidden, weight, targets, normalizer, entropy = ctx.saved_tensors
        temperature, chunk_size, first, _ = ctx.layout
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        for start in range(0, hidden.shape[0], chunk_size):
            piece = slice(start, start + chunk_size)
            logits = _logits(hidden[piece], weight, ctx.layout)
            grad_logits = softmax_grad(
                logits,
                targets[piece] - first,
                temperature,
                *(x[piece] for x in (normalizer, entropy, grad_log_prob, grad_entropy)),
            )
            real = weight[: logits.shape[1]]
            grad_hidden[piece] = grad_logits @ real
            _add_product(grad_weight[: logits.shape[1]], grad_logits.t(), hidden[piece])
        return grad_hidden, grad_weight.to(weight.dtype), None, None, None, None, None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to a float32 ``total``, without a copy of its size where types allow."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += (left @ right).float()


def _logits(hidden: Tensor, weight: Tensor, layout: tuple[float, int, int, int]) -> Tensor:
    """Logits of the rank's real vocabulary rows; padded rows take no part in the softmax."""
    _, _, _, real_rows = layout
    return hidden @ weight[: max(real_rows, 0)].t()


def vocab_parallel_log_prob(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    temperature: float,
    vocab_size: int,
    chunk_size: int,
    group: Any,
) -> tuple[Tensor, Tensor]:
    """Log-probs of ``targets`` and entropies, both fp32 [R], equal on every rank of ``group``.

    Args:
        hidden: [R, h], the same on every rank of ``group``; its gradient is this rank's part only
            and must be summed over the group (see ``gather_hidden``).
        weight: [V_padded / TP, h], this rank's rows of the output layer.
        targets: int64 [R].
        temperature: sampling temperature that divides the logits.
        vocab_size: rows that are real tokens; padding behind them is ignored.
        chunk_size: tokens whose logits exist at once.
        group: tensor parallel process group.
    """
    result: tuple[Tensor, Tensor] = _VocabParallelLogProb.apply(  # type: ignore[no-untyped-call]
        hidden, weight, targets, temperature, vocab_size, chunk_size, group
    )
    return result
