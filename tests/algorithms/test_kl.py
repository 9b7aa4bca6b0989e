# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""KL estimators: gradients, bias, clamps and accuracy."""

from __future__ import annotations

import math

import pytest
import torch

from megacurl.algorithms.kl import kl_estimate


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_values_and_gradients(estimator: str) -> None:
    x = torch.tensor([-3.0, -0.1, 0.0, 0.2, 4.0], dtype=torch.float64, requires_grad=True)
    ref = torch.full((5,), -1.0, dtype=torch.float64, requires_grad=True)
    estimate = kl_estimate(x - 1, ref, estimator)
    values = {"k1": lambda r: r, "k2": lambda r: r * r / 2, "k3": lambda r: math.exp(-r) + r - 1}
    slopes = {"k1": lambda r: 1.0, "k2": lambda r: r, "k3": lambda r: 1 - math.exp(-r)}
    ratios = x.tolist()
    assert estimate.tolist() == pytest.approx([values[estimator](r) for r in ratios], abs=1e-15)
    estimate.sum().backward()
    assert x.grad is not None and ref.grad is None
    assert x.grad.tolist() == pytest.approx([slopes[estimator](r) for r in ratios], abs=1e-15)


def test_k3_of_a_tiny_ratio_is_not_lost_in_float32() -> None:
    tiny = torch.tensor([1e-3], dtype=torch.float32)
    assert kl_estimate(tiny, torch.zeros(1), "k3").item() == pytest.approx(5e-7, rel=1e-1)
    assert kl_estimate(tiny, torch.zeros(1), "k3").item() >= 0


def test_both_k1_and_k3_estimate_the_divergence_without_bias() -> None:
    policy, ref = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], dtype=torch.float64)
    divergence = float((policy * (policy / ref).log()).sum())
    for estimator in ("k1", "k3"):
        estimate = kl_estimate(policy.log(), ref.log(), estimator)
        assert float((policy * estimate).sum()) == pytest.approx(divergence, rel=1e-12)


def test_huge_ratios_are_finite_with_gradient_zero() -> None:
    x = torch.tensor([-1e5, 1e5], requires_grad=True)
    estimate = kl_estimate(x, torch.zeros(2), "k3", output_clamp=10.0)
    estimate.sum().backward()
    assert estimate.tolist() == [10.0, 10.0] and x.grad is not None and x.grad.tolist() == [0, 0]
    assert bool(kl_estimate(x, torch.zeros(2), "k3").isfinite().all())


def test_unknown_estimator_is_named() -> None:
    with pytest.raises(ValueError, match="kl_estimator is 'k4'"):
        kl_estimate(torch.zeros(1), torch.zeros(1), "k4")
