# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Parts of a vocabulary merge to the log-probs, entropies and gradients of the whole."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits
from megacurl.algorithms.softmax_parts import softmax_grad, softmax_sums

TEMPERATURE = 0.7


def merged(parts: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-prob, entropy and normalizer from the sums of all parts, as the ranks do."""
    tops, sums, weighted, picked = torch.stack(parts, dim=1).double()
    top = tops.amax(0)
    shift = tops - top
    total = (shift.exp() * sums).sum(0)
    mean = (shift.exp() * (weighted + shift * sums)).sum(0) / total
    return picked.sum(0) - top - total.log(), total.log() - mean, top + total.log()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offset", [0.0, 200.0])
def test_parts_equal_the_whole(dtype: torch.dtype, offset: float) -> None:
    torch.manual_seed(0)
    rows, bounds = 6, (0, 1, 1, 70, 1000)
    logits = (3 * torch.randn(rows, bounds[-1]) + offset).to(dtype)
    logits[1, 5] = -math.inf
    targets = torch.tensor([0, 1, 69, 70, 999, 500])
    parts = [
        softmax_sums(logits[:, a:b].contiguous(), targets - a, TEMPERATURE)
        for a, b in itertools.pairwise(bounds)
    ]
    log_prob, entropy, normalizer = merged(parts)
    whole = logits.double().requires_grad_()
    expected = log_probs_from_logits(whole, targets, temperature=TEMPERATURE)
    expected_entropy = entropy_from_logits(whole, temperature=TEMPERATURE)
    # Scaled logits near 300 have a rounding of 3e-5 themselves.
    bound = 1e-5 if offset == 0 else 1e-4
    torch.testing.assert_close(log_prob, expected, rtol=bound, atol=bound)
    torch.testing.assert_close(entropy, expected_entropy, rtol=bound, atol=bound)

    by_log_prob, by_entropy = torch.randn(rows), torch.randn(rows)
    total = (by_log_prob * expected).sum() + (by_entropy * expected_entropy).sum()
    (expected_grad,) = torch.autograd.grad(total, whole)
    found = torch.cat(
        [
            softmax_grad(
                logits[:, a:b].contiguous(), targets - a, TEMPERATURE,
                normalizer.float(), entropy.float(), by_log_prob, by_entropy,
            )
            for a, b in itertools.pairwise(bounds)
        ],
        dim=1,
    )  # fmt: skip
    assert found.dtype == dtype
    rtol = 5e-3 if dtype == torch.bfloat16 else 10 * bound
    torch.testing.assert_close(found.double(), expected_grad, rtol=rtol, atol=bound)


def test_a_nan_among_the_logits_is_not_hidden() -> None:
    for width in (3, 16, 40):
        logits = torch.zeros(2, width)
        logits[0, width - 1] = math.nan
        sums = softmax_sums(logits, torch.zeros(2, dtype=torch.long), 1.0)
        assert bool(sums[1, 0].isnan()) and bool(sums[:, 1].isfinite().all())


def test_a_rank_without_real_vocabulary_adds_nothing() -> None:
    sums = softmax_sums(torch.zeros(2, 0), torch.tensor([-3, 4]), 1.0)
    assert bool((sums[0] < -1e29).all()) and sums[1:].tolist() == [[0.0, 0.0]] * 3
