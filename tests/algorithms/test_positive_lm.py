# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The language-model loss on correct responses."""

from __future__ import annotations

import pytest
import torch

from megacurl.algorithms.positive_lm import positive_lm_loss
from tests.algorithms.batches import make_batch, noise

CORRECT = torch.tensor([True, False, True, True, True, False, False])


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
