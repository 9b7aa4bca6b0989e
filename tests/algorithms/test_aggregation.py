# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Coefficients: what they sum to, and that no cut of the batch changes a loss or its gradient."""

from __future__ import annotations

import functools

import pytest
import torch

from megacurl.algorithms.aggregation import (
    Denominators,
    aggregate,
    global_denominators,
    prompt_token_counts,
    token_coefficients,
)
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.policy_loss import PolicyStats, policy_loss
from tests.algorithms.batches import CUTS, LENGTHS, make_batch, noise

MODES = (
    "token-mean",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
    "token-sum-norm",
    "prompt-mean-token-mean",
)
GROUP = torch.tensor([7, 7, 4, 9, 4, 7, 4])
CORRECT = torch.tensor([True, False, True, True, True, False, False])


def counts_of(seed: int = 0) -> tuple[torch.Tensor, Denominators]:
    batch = make_batch(seed)
    lengths = valid_lengths(batch.mask, batch.cu_seqlens)
    return lengths, global_denominators(lengths, correct=CORRECT, group=GROUP, max_length=50)


def test_denominators_count_only_what_can_be_trained() -> None:
    lengths, found = counts_of()
    n = lengths.tolist()
    assert n[2] == n[3] == 0, "the empty and the all-masked response"
    assert found == Denominators(
        tokens=sum(n),
        sequences=sum(x > 0 for x in n),
        correct_tokens=n[0] + n[4],
        prompts=2,  # question 9 has only the all-masked response
        max_length=50,
    )
    assert prompt_token_counts(lengths, GROUP).tolist() == [
        sum(n[j] for j in range(len(n)) if GROUP[j] == g) for g in GROUP
    ]


@pytest.mark.parametrize("mode", MODES)
def test_coefficients_by_definition(mode: str) -> None:
    batch = make_batch()
    lengths, d = counts_of()
    per_prompt = prompt_token_counts(lengths, GROUP)
    coefs = token_coefficients(
        batch.mask,
        batch.cu_seqlens,
        mode,
        d,
        prompt_tokens=per_prompt,
        dtype=torch.float64,
    )
    assert bool((coefs[~batch.mask] == 0).all())
    for b, (c, m) in enumerate(
        zip(coefs.split(batch.lengths), batch.mask.split(batch.lengths), strict=True)
    ):
        divisor = {
            "token-mean": d.tokens,
            "seq-mean-token-mean": d.sequences * int(lengths[b]),
            "seq-mean-token-sum": d.sequences,
            "seq-mean-token-sum-norm": d.sequences * 50,
            "token-sum-norm": 50,
            "prompt-mean-token-mean": d.prompts * int(per_prompt[b]),
        }[mode]
        torch.testing.assert_close(c[m], torch.full_like(c[m], 1 / max(divisor, 1)))
    if "norm" not in mode and mode != "seq-mean-token-sum":
        assert float(coefs.sum()) == pytest.approx(1, rel=1e-12)


def run_cut(mode: str, cut: list[list[int]]) -> tuple[float, torch.Tensor, dict[str, float]]:
    """Return loss, gradient and statistics of one mini-batch, computed piece by piece."""
    batch = make_batch()
    lengths, denominators = counts_of()
    per_prompt = prompt_token_counts(lengths, GROUP)
    log_probs = batch.poisoned(noise(batch, 1) * 0.3).requires_grad_()
    old, adv = batch.poisoned(noise(batch, 2) * 0.3), batch.poisoned(noise(batch, 3))
    losses, stats = [], []
    for sequences in cut:
        part, (x, o, a) = batch.part(sequences, log_probs, old, adv)
        coefs = token_coefficients(
            part.mask,
            part.cu_seqlens,
            mode,
            denominators,
            prompt_tokens=per_prompt[sequences],
            dtype=torch.float64,
        )
        loss, partial = policy_loss(
            x, o, a, part.mask, coefs, eps_clip=0.2, eps_clip_high=0.28, dual_clip=3.0
        )
        losses.append(loss)
        stats.append(partial)
    total = torch.stack(losses).sum()
    grad = torch.autograd.grad(total, log_probs)[0]
    assert bool((grad[~batch.mask] == 0).all()) and bool(grad.isfinite().all())
    return float(total.detach()), grad, functools.reduce(PolicyStats.merge, stats).metrics()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cut", CUTS[1:])
def test_cut_and_order_change_neither_loss_nor_gradient(mode: str, cut: list[list[int]]) -> None:
    whole_loss, whole_grad, whole_stats = run_cut(mode, CUTS[0])
    loss, grad, stats = run_cut(mode, cut)
    assert loss == pytest.approx(whole_loss, rel=1e-12) and loss != 0
    torch.testing.assert_close(grad, whole_grad, rtol=1e-12, atol=1e-15)
    assert stats == pytest.approx(whole_stats, rel=1e-12)
    assert stats["clip_frac"] > 0


def test_a_batch_without_trainable_tokens_is_flagged_and_weighs_nothing() -> None:
    mask, offsets = torch.zeros(3, dtype=torch.bool), torch.tensor([0, 2, 3])
    nothing = global_denominators(valid_lengths(mask, offsets), group=torch.tensor([0, 1]))
    assert nothing.empty and not counts_of()[1].empty
    for mode in MODES:
        coefs = token_coefficients(mask, offsets, mode, nothing)
        assert coefs.tolist() == [0.0, 0.0, 0.0]
        x = torch.full((3,), float("nan"), requires_grad=True)
        loss = aggregate(x, mask, coefs)
        loss.backward()
        assert loss.item() == 0 and x.grad is not None and x.grad.tolist() == [0.0] * 3


def test_missing_counts_are_named() -> None:
    mask, offsets = torch.ones(2, dtype=torch.bool), torch.tensor([0, 2])
    bare = global_denominators(torch.tensor([2]))
    for mode in ("seq-mean-token-sum-norm", "token-sum-norm"):
        with pytest.raises(ValueError, match="response length limit, which is None"):
            token_coefficients(mask, offsets, mode, bare)
    with pytest.raises(ValueError, match="needs the questions of the batch"):
        token_coefficients(mask, offsets, "prompt-mean-token-mean", bare)
    with pytest.raises(ValueError, match="loss_agg_mode is 'mean'"):
        token_coefficients(mask, offsets, "mean", bare)
    assert len(LENGTHS) == GROUP.numel() == CORRECT.numel()
