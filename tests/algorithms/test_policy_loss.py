# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The clipped policy loss: branches, edges, extremes and statistics."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from megacurl.algorithms.aggregation import global_denominators, token_coefficients
from megacurl.algorithms.packed import expand, segment_mean, valid_lengths
from megacurl.algorithms.policy_loss import PolicyStats, policy_loss
from tests.algorithms.batches import Batch, make_batch, noise

CLIP = {"eps_clip": 0.2, "eps_clip_high": 0.28}


def run(
    ratios: list[float],
    advantages: list[float],
    dtype: torch.dtype = torch.float64,
    **options: float,
) -> tuple[Tensor, Tensor, PolicyStats]:
    """Return loss and gradient by log-prob when every token has coefficient 1."""
    old = torch.zeros(len(ratios), dtype=dtype)
    log_probs = torch.tensor(ratios, dtype=dtype).log().requires_grad_()
    loss, stats = policy_loss(
        log_probs,
        old,
        torch.tensor(advantages, dtype=dtype),
        torch.ones(len(ratios), dtype=torch.bool),
        torch.ones(len(ratios), dtype=dtype),
        **{**CLIP, **options},
    )
    return loss, torch.autograd.grad(loss, log_probs)[0], stats


def test_only_the_harmful_side_of_each_range_is_clipped() -> None:
    _, grad, stats = run([1.5, 0.5, 1.5, 0.5], [1.0, 1.0, -1.0, -1.0])
    assert grad.tolist() == pytest.approx([0.0, -0.5, 1.5, 0.0])
    assert stats.metrics()["clip_frac"] == 0.5
    assert stats.metrics()["max_ratio_gap"] == pytest.approx(0.5)


def test_the_edge_belongs_to_the_range() -> None:
    one = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    advantages = torch.tensor([2.0, -3.0], dtype=torch.float64)
    loss, stats = policy_loss(
        one, one.detach(), advantages, torch.ones(2).bool(), torch.ones(2).double(),
        eps_clip=0.0, eps_clip_high=0.0,
    )  # fmt: skip
    assert torch.autograd.grad(loss, one)[0].tolist() == [-2.0, 3.0]
    assert stats.metrics()["clip_frac"] == 0


def test_dual_clip_bounds_only_negative_advantages() -> None:
    loss, grad, stats = run([5.0, 0.9, 5.0], [-1.0, -1.0, 1.0], dual_clip=3.0)
    assert loss.item() == pytest.approx(3.0 + 0.9 - 1.28)
    assert grad.tolist() == pytest.approx([0.0, 0.9, 0.0])
    assert stats.metrics()["dual_clip_frac"] == pytest.approx(1 / 3)
    unbounded, grad, _ = run([5.0], [-1.0])
    assert unbounded.item() == pytest.approx(5.0) and grad.tolist() == pytest.approx([5.0])


def test_huge_log_ratios_stay_finite_in_float32() -> None:
    log_probs = torch.tensor([-1e4, 0.0, -300.0, -1.0], requires_grad=True)
    old = torch.tensor([0.0, -1e4, -1.0, -300.0])
    advantages = torch.tensor([1.0, -1.0, -1.0, 1.0])
    loss, stats = policy_loss(
        log_probs, old, advantages, torch.ones(4).bool(), torch.full((4,), 0.25), **CLIP
    )
    grad = torch.autograd.grad(loss, log_probs)[0]
    assert math.isfinite(loss.item()) and grad.tolist() == [0.0] * 4
    assert stats.metrics()["max_ratio_gap"] == pytest.approx(math.exp(20), rel=1e-5)


def test_first_update_has_ratio_one_and_the_plain_gradient() -> None:
    loss, grad, stats = run([1.0, 1.0], [0.7, -0.3])
    assert loss.item() == pytest.approx(-0.4) and grad.tolist() == [-0.7, 0.3]
    assert stats.metrics() == {
        "clip_frac": 0.0, "dual_clip_frac": 0.0, "approx_kl": 0.0, "max_ratio_gap": 0.0,
    }  # fmt: skip


def test_empty_batch_has_loss_zero_connected_to_the_input() -> None:
    x = torch.zeros(0, requires_grad=True)
    none = torch.zeros(0)
    loss, stats = policy_loss(x, none, none, none.bool(), none, **CLIP)
    loss.backward()
    assert loss.item() == 0 and x.grad is not None
    assert stats.metrics()["max_ratio_gap"] == 0


def test_old_log_probs_and_advantages_are_constants() -> None:
    old = torch.zeros(1, requires_grad=True)
    adv = torch.ones(1, requires_grad=True)
    loss, _ = policy_loss(
        torch.zeros(1, requires_grad=True), old, adv, torch.ones(1).bool(), torch.ones(1), **CLIP
    )
    loss.backward()
    assert old.grad is None and adv.grad is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps_clip": 1.5}, "eps_clip=1.5"),
        ({"eps_clip_high": -0.1}, "eps_clip_high=-0.1"),
        ({"dual_clip": 1.0}, "dual_clip is 1.0"),
        ({"log_ratio_clamp": 0.0}, "log_ratio_clamp is 0.0"),
    ],
)
def test_bad_settings_are_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run([1.0], [1.0], **options)


def sequence_loss(
    batch: Batch, log_probs: Tensor, old: Tensor, advantages: Tensor, whole: Batch
) -> Tensor:
    """GSPO's loss of a part of ``whole``."""
    lengths = valid_lengths(whole.mask, whole.cu_seqlens)
    coefficients = token_coefficients(
        batch.mask,
        batch.cu_seqlens,
        "seq-mean-token-mean",
        global_denominators(lengths),
        dtype=torch.float64,
    )
    loss, _ = policy_loss(
        log_probs, old, advantages, batch.mask, coefficients, sequences=batch.cu_seqlens, **CLIP
    )
    return loss


def test_the_ratio_of_a_response_gives_the_gradient_of_the_whole_formula() -> None:
    batch = make_batch()
    old = noise(batch, 1)
    log_probs = (old + 0.3 * noise(batch, 2)).requires_grad_()
    per_response = torch.linspace(-1.0, 2.0, 7, dtype=torch.float64)
    advantages = expand(per_response, batch.cu_seqlens, batch.mask.numel())
    ratio = segment_mean(log_probs - old, batch.mask, batch.cu_seqlens).exp()
    objective = torch.minimum(ratio * per_response, ratio.clamp(0.8, 1.28) * per_response)
    present = valid_lengths(batch.mask, batch.cu_seqlens) > 0
    expected = -objective[present].sum() / present.sum()
    loss = sequence_loss(
        batch, batch.poisoned(log_probs), batch.poisoned(old), batch.poisoned(advantages), batch
    )
    torch.testing.assert_close(loss, expected)
    found, wanted = (torch.autograd.grad(x, log_probs)[0] for x in (loss, expected))
    torch.testing.assert_close(found, wanted)
