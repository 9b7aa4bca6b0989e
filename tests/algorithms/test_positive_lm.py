# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The language-model loss on correct responses."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.positive_lm import positive_lm_loss
from tests.algorithms.batches import CUTS, make_batch, noise

CORRECT = torch.tensor([True, False, True, True, True, False, False])


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("weighted", [False, True])
def test_normalised_by_the_correct_tokens_of_the_whole_batch(
    cut: list[list[int]], weighted: bool
) -> None:
    batch = make_batch()
    log_probs = batch.poisoned(noise(batch, 1)).requires_grad_()
    n = valid_lengths(batch.mask, batch.cu_seqlens)
    correct_tokens = int(n[CORRECT].sum())
    weights = torch.linspace(0.5, 2, 7) if weighted else None
    total = torch.zeros((), dtype=torch.float64)
    for sequences in cut:
        part, (x,) = batch.part(sequences, log_probs)
        total = total + positive_lm_loss(
            x,
            part.mask,
            CORRECT[sequences],
            part.cu_seqlens,
            correct_tokens=correct_tokens,
            weights=None if weights is None else weights[sequences],
        )
    factors = torch.ones(7) if weights is None else weights
    per_token = torch.repeat_interleave(factors.double() * CORRECT, torch.tensor(batch.lengths))
    expected = torch.where(batch.mask, per_token, 0.0) / correct_tokens
    grad = torch.autograd.grad(total, log_probs)[0]
    torch.testing.assert_close(grad, -expected)
    clean = torch.nan_to_num(log_probs.detach())
    assert total.item() == pytest.approx(-float((expected * clean).sum()), rel=1e-12)


def test_no_correct_response_gives_zero_and_no_nan() -> None:
    batch = make_batch()
    log_probs = batch.poisoned(noise(batch, 1)).requires_grad_()
    loss = positive_lm_loss(
        log_probs, batch.mask, torch.zeros(7).bool(), batch.cu_seqlens, correct_tokens=0
    )
    loss.backward()
    assert loss.item() == 0
    assert log_probs.grad is not None and bool((log_probs.grad == 0).all())


def test_bad_arguments_are_named() -> None:
    batch = make_batch()
    with pytest.raises(ValueError, match="correct_tokens is -1"):
        positive_lm_loss(noise(batch, 1), batch.mask, CORRECT, batch.cu_seqlens, correct_tokens=-1)
    with pytest.raises(ValueError, match=r"correct has shape \(2,\)"):
        positive_lm_loss(
            noise(batch, 1), batch.mask, CORRECT[:2], batch.cu_seqlens, correct_tokens=1
        )
