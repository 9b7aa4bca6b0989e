# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The chunked vocab-parallel log-prob against plain PyTorch, values and gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits
from megacurl.megatron.log_prob import vocab_parallel_log_prob
from tests.world import World

VOCAB, PADDED, HIDDEN, TOKENS = 13, 16, 5, 11


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(TOKENS, HIDDEN, generator=generator, dtype=dtype)
    weight = torch.randn(PADDED, HIDDEN, generator=generator, dtype=dtype)
    targets = torch.randint(0, VOCAB, (TOKENS,), generator=generator)
    upstream = torch.randn(2, TOKENS, generator=generator, dtype=dtype)
    return hidden, weight, targets, upstream


def job(chunk_size: int, temperature: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log-probs, entropies, hidden gradient summed over the ranks, this rank's weight gradient."""
    rank, size = dist.get_rank(), dist.get_world_size()
    hidden, weight, targets, upstream = inputs()
    rows = PADDED // size
    weight[VOCAB:] = 1e4  # padding must not take part, whatever stands there
    mine = weight[rank * rows : (rank + 1) * rows].clone().requires_grad_()
    hidden.requires_grad_()
    log_probs, entropy = vocab_parallel_log_prob(
        hidden,
        mine,
        targets,
        temperature=temperature,
        vocab_size=VOCAB,
        chunk_size=chunk_size,
        group=dist.group.WORLD,
    )
    (log_probs * upstream[0] + entropy * upstream[1]).sum().backward()
    assert hidden.grad is not None and mine.grad is not None
    dist.all_reduce(hidden.grad)
    return log_probs.detach(), entropy.detach(), hidden.grad, mine.grad


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize(("chunk_size", "temperature"), [(100, 1.0), (4, 0.7), (1, 2.5)])
def test_equals_dense(
    world: Callable[[int], World], size: int, chunk_size: int, temperature: float
) -> None:
    hidden, weight, targets, upstream = inputs()
    hidden.requires_grad_()
    real = weight[:VOCAB].clone().requires_grad_()
    logits = hidden @ real.t()
    expected = log_probs_from_logits(logits, targets, temperature=temperature)
    entropy = entropy_from_logits(logits, temperature=temperature)
    (expected * upstream[0] + entropy * upstream[1]).sum().backward()
    assert real.grad is not None

    ranks = world(size).run(job, chunk_size, temperature)
    # Logits are taken to fp32 inside, as in training.
    bounds = {"rtol": 1e-5, "atol": 1e-5, "check_dtype": False}
    for rank in ranks:
        torch.testing.assert_close(rank[0], expected.detach(), **bounds)
        torch.testing.assert_close(rank[1], entropy.detach(), **bounds)
        torch.testing.assert_close(rank[2], hidden.grad, **bounds)
    whole = torch.cat([rank[3] for rank in ranks])
    torch.testing.assert_close(whole[:VOCAB], real.grad, **bounds)
    assert whole[VOCAB:].abs().max() == 0
