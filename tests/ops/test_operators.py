# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Each operator against its plain PyTorch reference in float64, over lengths, masks and types."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from megacurl import ops
from megacurl.algorithms.advantages import apply_weights
from megacurl.algorithms.gae import decoupled_gae, length_adaptive_lambda
from megacurl.algorithms.moments import Moments
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.stochasticity import group_mean_spread, stochasticity_weight, value_spread
from megacurl.algorithms.value_loss import value_loss
from megacurl.curriculum.difficulty import difficulty_weight
from tests.ops.batches import MASKS, Ragged

pytestmark = pytest.mark.skipif(not ops.is_built(), reason="the operators are not built")
OPS: Any = torch.ops.megacurl


def close(found: Tensor, expected: Tensor, *, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    torch.testing.assert_close(found.double(), expected.double(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gamma", [1.0, 0.99])
def test_gae(kind: str, dtype: torch.dtype, gamma: float) -> None:
    batch = Ragged.of(kind)
    values = batch.noise(mean=0.5, scale=0.3).to(dtype)
    rewards = batch.noise()
    policy = length_adaptive_lambda(batch.lengths, 0.05)
    critic = torch.ones_like(policy)
    bootstrap = batch.per_sequence()
    cu = batch.cu_seqlens(torch.int64 if gamma == 1 else torch.int32)
    found = OPS.gae(values, rewards, batch.mask, cu, policy, critic, gamma, bootstrap)
    with ops.using("reference"):
        expected = decoupled_gae(
            values.double(),
            rewards.double(),
            batch.valid,
            cu,
            gamma=gamma,
            lam_policy=policy,
            lam_critic=critic,
            bootstrap=bootstrap.double(),
        )
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == torch.float32 and bool((f[~batch.valid] == 0).all())
        # Sums of thousands of terms: the error is relative to the largest of them.
        close(f, e, atol=2e-6 * max(1.0, float(e.abs().max())))


def test_gae_of_65536_tokens_and_of_one() -> None:
    batch = Ragged.of("none", (65536, 1))
    values, rewards = batch.noise(), torch.zeros(batch.tokens)
    rewards[65535] = rewards[65536] = 1
    lam = length_adaptive_lambda(batch.lengths, 0.05)
    cu = batch.cu_seqlens()
    found = OPS.gae(values, rewards, None, cu, lam, torch.ones_like(lam), 1.0, None)
    with ops.using("reference"):
        expected = decoupled_gae(
            values.double(), rewards.double(), batch.valid, cu,
            gamma=1.0, lam_policy=lam, lam_critic=1.0,
        )  # fmt: skip
    close(found[0], expected[0], atol=1e-5 * float(expected[0].abs().max()))
    # Monte-Carlo returns telescope to the outcome; float32 keeps that to its own rounding.
    close(found[1], torch.ones(batch.tokens), atol=2e-3)


def test_gae_clamps_lambda() -> None:
    batch = Ragged.of("random", (40,))
    values, rewards, cu = batch.noise(), batch.noise(), batch.cu_seqlens()

    def run(policy: float, critic: float) -> tuple[Tensor, Tensor]:
        lam = [torch.tensor([x], dtype=torch.float64) for x in (policy, critic)]
        return OPS.gae(values, rewards, batch.mask, cu, *lam, 1.0, None)

    for found, expected in zip(run(-19.0, 1.7), run(0.0, 1.0), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_value_stats(kind: str, dtype: torch.dtype) -> None:
    batch = Ragged.of(kind)
    values = batch.noise(mean=50.0).to(dtype)
    cu = batch.cu_seqlens()
    count, mean, m2 = OPS.value_stats(values, batch.mask, cu)
    pieces = zip(
        values.split(batch.lengths.tolist()), batch.valid.split(batch.lengths.tolist()), strict=True
    )
    expected = [Moments.of(v, m) for v, m in pieces]
    assert count.tolist() == [e.count for e in expected]
    close(mean, torch.tensor([e.mean for e in expected]), rtol=1e-7, atol=0)
    close(m2, torch.tensor([e.m2 for e in expected], dtype=torch.float64), rtol=1e-6, atol=1e-9)
    with ops.using("reference"):
        spread = value_spread(values.double(), batch.valid, cu)
    close((m2 / count.clamp(min=1)).sqrt(), spread, rtol=1e-6, atol=1e-9)


def test_group_mean() -> None:
    x = torch.rand(40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    include = torch.arange(40) % 3 > 0
    offsets = torch.tensor([0, 0, 1, 35, 40])
    group = torch.repeat_interleave(torch.arange(4), offsets.diff())
    for chosen in (None, include):
        mean, count = OPS.group_mean(x, chosen, offsets)
        with ops.using("reference"):
            expected = group_mean_spread(x, group, x > 2, include=chosen)
        close(mean[group], expected, rtol=1e-14, atol=0)
        member = torch.ones(40).bool() if chosen is None else chosen
        assert count.tolist() == [int(part.sum()) for part in member.split(offsets.diff().tolist())]
        assert mean[0] == 0


@pytest.mark.parametrize("bottleneck", [False, True])
@pytest.mark.parametrize("prose", [False, True])
@pytest.mark.parametrize("relative", [False, True])
def test_cvpo_weights(bottleneck: bool, prose: bool, relative: bool) -> None:
    batch = Ragged.of("none")
    n = len(batch.lengths)
    spread, mean = (batch.per_sequence().double() for _ in range(2))
    mean[3] = 0.0
    correct, accuracy = batch.per_sequence() > 0.5, batch.per_sequence().double()
    advantages, cu = batch.noise(), batch.cu_seqlens()
    shape = (12.0, 0.35, 20.0, 0.8)
    w_s, w_d, weighted = OPS.cvpo_weights(
        spread, mean, correct, accuracy, advantages, cu, 0.3, 0.4, 50.0, 20.0,
        prose, relative, bottleneck, *shape,
    )  # fmt: skip
    with ops.using("reference"):
        expected_s = stochasticity_weight(
            spread, mean, correct, alpha_p=0.3, alpha_n=0.4, lambda_p=50.0, lambda_n=20.0,
            direction="prose" if prose else "equation", scale="relative" if relative else "raw",
        )  # fmt: skip
        expected_d = difficulty_weight(
            accuracy,
            "bottleneck" if bottleneck else "early",
            early=shape,
            bottleneck=shape,
        )
        expected = apply_weights(advantages.double(), expected_s, expected_d, cu)
    close(w_s, expected_s, rtol=1e-14, atol=0)
    close(w_d, expected_d, rtol=1e-13, atol=0)
    close(weighted, expected, rtol=1e-6, atol=0)
    one = torch.ones(n, dtype=torch.float64)
    assert torch.equal(OPS.apply_weights(advantages, one, None, cu), advantages)


def loss_inputs(kind: str) -> tuple[Ragged, dict[str, Tensor]]:
    batch = Ragged.of(kind)
    old = batch.noise()
    names = {"advantages": batch.noise(), "token_weights": batch.noise().abs()}
    coefficients = torch.rand(batch.tokens, generator=batch.generator) / batch.tokens
    new = old + batch.noise(scale=0.5)
    new[-3:] = torch.tensor([60.0, -60.0, 25.0]) + old[-3:]  # beyond the clamp
    return batch, {"old": old, "new": new, "coefficients": coefficients, **names}


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dual_clip", [None, 1.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_policy_loss(kind: str, dual_clip: float | None, weighted: bool) -> None:
    batch, x = loss_inputs(kind)
    weights = x["token_weights"] if weighted else None
    entropy = batch.noise().abs()

    def reference() -> tuple[Tensor, Any, Tensor]:
        new = x["new"].double().requires_grad_()
        with ops.using("reference"):
            loss, stats = policy_loss(
                new,
                x["old"].double(),
                x["advantages"].double(),
                batch.valid,
                x["coefficients"].double(),
                eps_clip=0.2,
                eps_clip_high=0.28,
                dual_clip=dual_clip,
                token_weights=None if weights is None else weights.double(),
            )
        return loss.detach(), stats, torch.autograd.grad(loss, new)[0]

    new = x["new"].clone().requires_grad_()
    loss, sums, _ = OPS.policy_loss(
        new, x["old"], x["advantages"], batch.mask, x["coefficients"], weights, entropy,
        0.2, 0.28, dual_clip or 0.0, 20.0,
    )  # fmt: skip
    (grad,) = torch.autograd.grad(2 * loss, new)
    expected, stats, expected_grad = reference()
    scale = 1 + float(expected_grad.abs().sum())
    close(loss.detach(), expected, atol=1e-6 * scale)
    close(grad, 2 * expected_grad, rtol=2e-6, atol=1e-12)
    assert bool((grad[~batch.valid] == 0).all())
    _, tokens, high, low, dual, k1, k3, ratio, total_entropy, largest, smallest = sums.tolist()
    assert tokens == float(stats.tokens) and dual == float(stats.dual_clipped)
    assert high + low == float(stats.clipped)
    assert k1 == pytest.approx(float(stats.approx_kl), rel=1e-4, abs=1e-3)
    gap = max(largest - 1, 1 - smallest)
    assert gap == pytest.approx(float(stats.max_ratio_gap), rel=1e-5, abs=1e-6)
    log_ratio = (x["new"] - x["old"]).double()[batch.valid].clamp(-20, 20)
    assert ratio == pytest.approx(float(log_ratio.exp().sum()), rel=1e-5)
    assert k3 == pytest.approx(float((log_ratio.exp() - 1 - log_ratio).sum()), rel=1e-5)
    assert total_entropy == pytest.approx(float(entropy[batch.valid].double().sum()), rel=1e-5)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("value_clip", [None, 0.2])
@pytest.mark.parametrize("half", [True, False])
def test_value_loss(kind: str, value_clip: float | None, half: bool) -> None:
    batch = Ragged.of(kind)
    values, returns, old = (batch.noise(mean=20.0) for _ in range(3))
    coefficients = torch.rand(batch.tokens, generator=batch.generator)
    leaf = values.clone().requires_grad_()
    loss, sums, _ = OPS.value_loss(
        leaf, returns, None if value_clip is None else old, batch.mask, coefficients,
        value_clip or 0.0, half,
    )  # fmt: skip
    (grad,) = torch.autograd.grad(loss, leaf)
    double = values.double().requires_grad_()
    with ops.using("reference"):
        expected, stats = value_loss(
            double, returns.double(), old.double(), batch.valid, coefficients.double(),
            value_clip=value_clip, half=half,
        )  # fmt: skip
    (expected_grad,) = torch.autograd.grad(expected, double)
    close(loss.detach(), expected.detach(), rtol=1e-6)
    # Values near 20 have a rounding of 1e-6, and so has their distance to the target.
    close(grad, expected_grad, rtol=1e-5, atol=1e-5)
    assert sums[1:3].tolist() == [float(stats.tokens), float(stats.clipped)]
    assert float(sums[3]) == pytest.approx(float(stats.squared_error), rel=1e-6)
    residual = Moments.of((returns - values).double(), batch.valid)
    target = Moments.of(returns.double(), batch.valid)
    wanted = [residual.mean, residual.m2, target.mean, target.m2]
    assert sums[4:].tolist() == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_losses_let_a_nan_through_and_no_garbage() -> None:
    one = torch.ones(40)
    for at in (3, 35):  # in the vector part and in the rest
        broken = one.clone()
        broken[at] = math.nan
        for inputs in ((broken, one, one), (one, broken, one), (one, one, broken)):
            loss, *_ = OPS.policy_loss(*inputs, None, one, None, None, 0.2, 0.28, 0.0, 20.0)
            assert math.isnan(loss)
        loss, *_ = OPS.value_loss(broken, one, one, None, one, 0.2, True)
        assert math.isnan(loss)


def test_nothing_to_do() -> None:
    none = torch.zeros(0)
    loss, sums, grad = OPS.policy_loss(
        none, none, none, None, none, None, None, 0.2, 0.2, 0.0, 20.0
    )
    assert loss == 0 and sums.tolist() == [0.0] * 9 + [1.0, 1.0] and grad.shape == (0,)
    loss, sums, grad = OPS.value_loss(none, none, None, None, none, 0.0, True)
    assert loss == 0 and sums.tolist() == [0.0] * 8
    for offsets in (torch.tensor([0]), torch.tensor([0, 0, 0])):
        sequences = offsets.numel() - 1
        lam = torch.ones(sequences, dtype=torch.float64)
        advantages, _ = OPS.gae(none, none, None, offsets, lam, lam, 1.0, None)
        assert advantages.shape == (0,)
        assert OPS.value_stats(none, None, offsets)[0].tolist() == [0.0] * sequences
