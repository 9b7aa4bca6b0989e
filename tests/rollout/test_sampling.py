# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Uniform numbers and the processed distribution, against exact counts and chi-square limits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from megacurl.rollout.sampling import (
    RowSampling,
    counter_uniform,
    filter_top_k_top_p,
    sample_tokens,
)

_MASK = (1 << 64) - 1


def _chi_square(observed: Tensor, expected: Tensor) -> float:
    """Chi-square statistic in standard deviations above its mean (Wilson and Hilferty 1931)."""
    freedom = observed.numel() - 1
    ratio = float(((observed - expected) ** 2 / expected).sum()) / freedom
    return (ratio ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def _rows(count: int, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> RowSampling:
    greedy = temperature == 0.0
    return RowSampling(
        temperature=torch.full((count,), 1.0 if greedy else temperature),
        greedy=torch.full((count,), greedy),
        top_k=torch.full((count,), top_k),
        top_p=torch.full((count,), top_p),
        any_greedy=greedy,
        any_filter=top_k > 0 or top_p < 1.0,
    )


def _draw(logits: Tensor, count: int, rows: RowSampling) -> tuple[Tensor, Tensor]:
    uniforms = counter_uniform(torch.arange(count), torch.zeros(1, dtype=torch.long))
    return sample_tokens(logits.float().expand(count, -1).clone(), rows, uniforms)


def test_uniform_is_splitmix_of_seed_and_counter() -> None:
    def mix(state: int) -> int:
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        return state ^ state >> 31

    gamma = 0x9E3779B97F4A7C15
    for seed, counter in ((0, 0), (12345, 7), (2**63 - 1, 4000)):
        word = mix((mix(seed ^ gamma) + (counter + 1) * gamma) & _MASK) >> 16
        got = counter_uniform(torch.tensor([seed]), torch.tensor([counter]))
        assert got.dtype == torch.float64
        assert got.item() == (word + 0.5) / 2**48


def test_uniforms_are_uniform_over_seeds_and_over_positions() -> None:
    grid = counter_uniform(torch.arange(400)[:, None], torch.arange(500))
    assert grid.min() > 0.0 and grid.max() < 1.0
    whole = torch.histc(grid.float(), bins=100, min=0, max=1)
    assert abs(_chi_square(whole, torch.full((100,), grid.numel() / 100))) < 4
    # Each seed's own stream, and each position's numbers over the seeds.
    for axis in (grid, grid.t()):
        scores = [
            _chi_square(torch.histc(line.float(), 20, 0, 1), torch.full((20,), line.numel() / 20))
            for line in axis[:100]
        ]
        assert max(scores) < 4.5
        assert abs(sum(scores) / len(scores)) < 0.5


@pytest.mark.parametrize("shift", [(1, 0), (0, 1), (1, 1), (2, 0), (7, 3), (1, -1)])
def test_neighbouring_seeds_and_positions_are_independent(shift: tuple[int, int]) -> None:
    seeds, counters = torch.arange(10, 310)[:, None], torch.arange(10, 310)
    a = counter_uniform(seeds, counters).flatten()
    b = counter_uniform(seeds + shift[0], counters + shift[1]).flatten()
    joint = torch.bincount((a * 16).long() * 16 + (b * 16).long(), minlength=256).float()
    assert abs(_chi_square(joint, torch.full((256,), a.numel() / 256))) < 4.5
    correlation = torch.corrcoef(torch.stack((a, b)))[0, 1].item()
    assert abs(correlation) < 4.5 / math.sqrt(a.numel())


@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.6])
def test_frequencies_follow_the_softmax(temperature: float) -> None:
    logits = torch.randn(40, generator=torch.Generator().manual_seed(0))
    tokens, log_probs = _draw(logits, 100_000, _rows(100_000, temperature))
    expected = (logits / temperature).log_softmax(-1)
    counts = torch.bincount(tokens, minlength=40).float()
    assert abs(_chi_square(counts, expected.exp() * 100_000)) < 4
    torch.testing.assert_close(log_probs, expected[tokens], atol=1e-6, rtol=0)


@pytest.mark.parametrize(("top_k", "top_p"), [(5, 1.0), (0, 0.6), (6, 0.7), (1, 1.0), (0, 1e-6)])
def test_filtered_frequencies(top_k: int, top_p: float) -> None:
    logits = 2 * torch.randn(30, generator=torch.Generator().manual_seed(1))
    probs = logits.double().softmax(-1).tolist()
    kept = sorted(range(30), key=lambda token: -probs[token])[: top_k or 30]
    mass, nucleus = sum(probs[token] for token in kept), []
    for token in kept:
        nucleus.append(token)
        if sum(probs[t] for t in nucleus) / mass >= top_p:
            break
    expected = torch.zeros(30, dtype=torch.float64)
    expected[nucleus] = torch.tensor([probs[t] for t in nucleus], dtype=torch.float64)
    expected /= expected.sum()

    tokens, log_probs = _draw(logits, 50_000, _rows(50_000, 1.0, top_k, top_p))
    assert set(tokens.tolist()) == set(nucleus)
    torch.testing.assert_close(log_probs.double(), expected[tokens].log(), atol=1e-5, rtol=0)
    if len(nucleus) > 1:
        counts = torch.bincount(tokens, minlength=30).double()[nucleus]
        assert abs(_chi_square(counts, expected[nucleus] * 50_000)) < 4


def test_filters_are_per_row_and_ties_go_by_id() -> None:
    logits = torch.tensor([[1.0, 1.0, 1.0, 1.0]]).repeat(3, 1)
    out = filter_top_k_top_p(logits, torch.tensor([2, 0, 0]), torch.tensor([1.0, 0.5, 1.0]))
    kept = torch.isfinite(out)
    assert kept.tolist() == [[True, True, False, False], [True, True, False, False], [True] * 4]


def test_greedy_rows_among_sampled_ones() -> None:
    logits = torch.randn(2000, 11, generator=torch.Generator().manual_seed(2))
    rows = _rows(2000)
    rows.greedy[::2] = True
    rows = RowSampling(rows.temperature, rows.greedy, rows.top_k, rows.top_p, True, False)
    uniforms = counter_uniform(torch.arange(2000), torch.zeros(1, dtype=torch.long))
    tokens, log_probs = sample_tokens(logits.clone(), rows, uniforms)
    assert torch.equal(tokens[::2], logits[::2].argmax(-1))
    assert not torch.equal(tokens[1::2], logits[1::2].argmax(-1))
    expected = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    torch.testing.assert_close(log_probs, expected)


@pytest.mark.parametrize("uniform", [2.0**-49, 0.5, 1 - 2.0**-49])
def test_impossible_tokens_are_never_drawn(uniform: float) -> None:
    logits = torch.full((1, 6), -torch.inf)
    logits[0, 2], logits[0, 3] = 0.0, -200.0  # exp(-200) underflows: also impossible
    tokens, log_probs = sample_tokens(
        logits, _rows(1), torch.tensor([uniform], dtype=torch.float64)
    )
    assert tokens.item() == 2 and log_probs.item() == 0.0


def test_a_broken_row_is_reported_and_leaves_others_alone() -> None:
    logits = torch.randn(4, 9)
    broken = logits.clone()
    broken[1, 4], broken[2, 0] = torch.nan, torch.inf
    uniforms = torch.full((4,), 0.3, dtype=torch.float64)
    tokens, log_probs = sample_tokens(broken, _rows(4), uniforms)
    good, good_log_probs = sample_tokens(logits, _rows(4), uniforms)
    assert torch.isnan(log_probs).tolist() == [False, True, True, False]
    assert tokens[[0, 3]].tolist() == good[[0, 3]].tolist()
    assert torch.equal(log_probs[[0, 3]], good_log_probs[[0, 3]])
