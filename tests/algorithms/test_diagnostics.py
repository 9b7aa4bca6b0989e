# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Correlations, effective sample size and shares of mass, against NumPy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from megacurl.algorithms.diagnostics import correlation, effective_share, mass_shares

RNG = np.random.default_rng(0)
X = RNG.normal(size=60) + 3
Y = 0.6 * X + RNG.normal(size=60)
GROUP = RNG.integers(0, 7, size=60)


def tensor(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(x))


def test_correlation_is_pearsons() -> None:
    expected = np.corrcoef(X, Y)[0, 1]
    assert correlation(tensor(X), tensor(Y)) == pytest.approx(expected, rel=1e-12)
    assert correlation(tensor(-X), tensor(Y)) == pytest.approx(-expected, rel=1e-12)
    assert correlation(tensor(X), tensor(3 * X + 2)) == pytest.approx(1.0, rel=1e-12)
    order = RNG.permutation(60)
    assert correlation(tensor(X[order]), tensor(Y[order])) == pytest.approx(expected, rel=1e-12)


def test_within_groups_the_means_of_the_groups_do_not_matter() -> None:
    x, y = X.copy(), Y.copy()
    for g in range(7):
        (inside,) = np.nonzero(g == GROUP)
        x[inside] -= X[inside].mean()
        y[inside] -= Y[inside].mean()
    expected = (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum())
    assert correlation(tensor(X), tensor(Y), tensor(GROUP)) == pytest.approx(expected, rel=1e-12)
    moved = correlation(tensor(X + 10 * GROUP), tensor(Y - 5 * GROUP), tensor(GROUP))
    assert moved == pytest.approx(expected, rel=1e-9)
    assert (correlation(tensor(X + 10 * GROUP), tensor(Y - 5 * GROUP)) or 0.0) < -0.9


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([0.1, 0.1, 0.1], [1.0, 2.0, 3.0]),  # their mean is not 0.1 in floating point
        ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]),
        ([1.0, 2.0], [5.0, 5.0 + 1e-7]),
    ],
)
def test_what_does_not_vary_has_no_correlation(x: list[float], y: list[float]) -> None:
    assert correlation(tensor(np.array(x)), tensor(np.array(y))) is None


def test_groups_of_one_have_no_correlation_within() -> None:
    assert correlation(tensor(X), tensor(Y), torch.arange(60)) is None


def test_huge_numbers_do_not_overflow() -> None:
    assert correlation(tensor(X * 1e150), tensor(Y * 1e-150)) == pytest.approx(
        np.corrcoef(X, Y)[0, 1], rel=1e-12
    )


def test_effective_share() -> None:
    assert effective_share(torch.full((5,), 0.3)) == pytest.approx(1.0, rel=1e-12)
    assert effective_share(torch.tensor([2.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert effective_share(torch.tensor([1.0, 2.0, 3.0])) == pytest.approx(36 / (3 * 14))
    assert effective_share(torch.zeros(3)) is None
    assert effective_share(torch.zeros(0)) is None


def test_mass_shares() -> None:
    mass, part = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([2, 0, 2, 0])
    assert mass_shares(mass, part, 3) == [0.6, 0.0, 0.4]
    assert mass_shares(torch.zeros(4), part, 3) == [None] * 3
    assert mass_shares(torch.zeros(0), part[:0], 2) == [None] * 2


def test_vectors_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"x has shape \(2,\) and y \(3,\)"):
        correlation(torch.zeros(2), torch.zeros(3))
