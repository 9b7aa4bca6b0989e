# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Reference log-probs and entropy from logits."""

from __future__ import annotations

import math

import pytest
import torch

from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_equals_torch_distributions(temperature: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(9, 13, generator=generator, dtype=torch.float64)
    tokens = torch.randint(0, 13, (9,), generator=generator)
    reference = torch.distributions.Categorical(logits=logits / temperature)
    log_probs = log_probs_from_logits(logits, tokens, temperature=temperature)
    torch.testing.assert_close(log_probs, reference.log_prob(tokens))
    entropy = entropy_from_logits(logits, temperature=temperature)
    torch.testing.assert_close(entropy, reference.entropy())


def test_impossible_tokens_count_for_nothing() -> None:
    logits = torch.tensor([[0.3, -0.7, 1.0]], dtype=torch.float64, requires_grad=True)
    padded = torch.cat((logits, torch.full((1, 2), -math.inf, dtype=torch.float64)), dim=1)
    entropy, padded_entropy = entropy_from_logits(logits), entropy_from_logits(padded)
    torch.testing.assert_close(entropy, padded_entropy)
    grads = [torch.autograd.grad(e.sum(), logits)[0] for e in (entropy, padded_entropy)]
    torch.testing.assert_close(*grads)
    assert bool(grads[1].isfinite().all())


def test_bfloat16_logits_are_worked_on_in_float32() -> None:
    logits = torch.tensor([[40.0, 0.0, 8.0]], dtype=torch.bfloat16)
    log_probs = log_probs_from_logits(logits, torch.tensor([2]))
    assert log_probs.dtype == entropy_from_logits(logits).dtype == torch.float32
    assert log_probs.item() == pytest.approx(-32.0, rel=1e-6)


def test_temperature_must_be_positive() -> None:
    for call in (
        lambda: entropy_from_logits(torch.zeros(1, 2), temperature=0.0),
        lambda: log_probs_from_logits(torch.zeros(1, 2), torch.zeros(1).long(), temperature=-1.0),
    ):
        with pytest.raises(ValueError, match="temperature is"):
            call()
