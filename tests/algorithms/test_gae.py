# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""GAE: long responses, extreme lambdas, stray rewards, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from megacurl.algorithms.gae import gae, length_adaptive_lambda, place_outcome
from tests.algorithms.batches import ALL_MASKED, LENGTHS, make_batch, noise

ONE = torch.tensor([0, 4], dtype=torch.int32)
GAP = torch.tensor([True, False, True, False])


def test_long_responses_keep_float32_accuracy() -> None:
    tokens = 6144
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(tokens, generator=generator)
    mask, offsets = torch.ones(tokens, dtype=torch.bool), torch.tensor([0, tokens])
    rewards = place_outcome(torch.ones(1), mask, offsets)
    lam = length_adaptive_lambda(torch.tensor([tokens]), 0.17)
    single, _ = gae(values, rewards, mask, offsets, gamma=1.0, lam=lam)
    double, _ = gae(values.double(), rewards.double(), mask, offsets, gamma=1.0, lam=lam)
    assert float((single.double() - double).abs().max()) < 2e-5


def test_lambda_one_gives_monte_carlo_returns_and_no_gradient_to_values() -> None:
    batch = make_batch()
    values = noise(batch, 1).requires_grad_()
    outcome = torch.arange(1.0, len(LENGTHS) + 1, dtype=torch.float64)
    rewards = place_outcome(outcome, batch.mask, batch.cu_seqlens)
    advantages, returns = gae(values, rewards, batch.mask, batch.cu_seqlens, gamma=1.0, lam=1.0)
    assert not advantages.requires_grad and not returns.requires_grad
    expected = torch.repeat_interleave(outcome, torch.tensor(LENGTHS))
    torch.testing.assert_close(returns, torch.where(batch.mask, expected, 0.0))


@pytest.mark.parametrize("offsets", [[0], [0, 0, 0]])
def test_batch_without_tokens(offsets: list[int]) -> None:
    nothing = torch.zeros(0)
    mask, bounds = torch.zeros(0, dtype=torch.bool), torch.tensor(offsets)
    advantages, returns = gae(nothing, nothing, mask, bounds, gamma=1.0, lam=0.5)
    assert advantages.shape == returns.shape == (0,)


def test_outcome_goes_to_the_last_sampled_token_or_nowhere() -> None:
    batch = make_batch()
    outcome = torch.arange(1.0, len(LENGTHS) + 1)
    rewards = place_outcome(outcome, batch.mask, batch.cu_seqlens)
    for b, (part, mask) in enumerate(
        zip(rewards.split(batch.lengths), batch.mask.split(batch.lengths), strict=True)
    ):
        nonzero = part.nonzero().squeeze(1).tolist()
        assert nonzero == mask.nonzero().squeeze(1).tolist()[-1:]
        assert part.sum() == (outcome[b] if nonzero else 0)
    assert not batch.mask.split(batch.lengths)[ALL_MASKED].any()


@pytest.mark.parametrize(
    ("mode", "returns"), [("drop", [1.0, 0.0, 1.0, 0.0]), ("carry", [4.0, 0.0, 3.0, 0.0])]
)
def test_stray_rewards_are_dropped_or_carried(mode: str, returns: list[float]) -> None:
    rewards = torch.tensor([0.0, 1.0, 1.0, 2.0])
    _, found = gae(torch.zeros(4), rewards, GAP, ONE, gamma=1.0, lam=1.0, masked_reward=mode)
    assert found.tolist() == returns


def test_stray_rewards_are_an_error_by_default_but_garbage_is_not() -> None:
    values = torch.zeros(4)
    with pytest.raises(ValueError, match=r"rewards\[1\] is 0\.5 on a token .* masked_reward"):
        gae(values, torch.tensor([0.0, 0.5, 1.0, 0.0]), GAP, ONE, gamma=1.0, lam=1.0)
    garbage = torch.tensor([0.0, math.nan, 1.0, math.inf])
    for mode in ("error", "drop", "carry"):
        _, returns = gae(values, garbage, GAP, ONE, gamma=1.0, lam=1.0, masked_reward=mode)
        assert returns.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_a_reward_with_no_token_before_it_cannot_be_carried() -> None:
    mask = torch.tensor([True, True, False, True])
    offsets = torch.tensor([0, 2, 4])
    rewards = torch.tensor([0.0, 0.0, 3.0, 0.0])
    with pytest.raises(ValueError, match=r"rewards\[2\] is 3\.0 .* no sampled token before"):
        gae(torch.zeros(4), rewards, mask, offsets, gamma=1.0, lam=1.0, masked_reward="carry")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lam": 1.5}, "lam is 1.5"),
        ({"lam": torch.tensor([-0.1])}, "lam is"),
        ({"lam": torch.tensor([0.1, 0.2])}, "lam has shape"),
        ({"lam": math.nan}, "lam is nan"),
        ({"gamma": 1.1}, "gamma is 1.1"),
        ({"bootstrap": torch.zeros(3)}, "bootstrap has shape"),
        ({"masked_reward": "keep"}, "masked_reward is 'keep'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"gamma": 1.0, "lam": 0.9, **settings}
    with pytest.raises(ValueError, match=message):
        gae(torch.zeros(4), torch.zeros(4), GAP, ONE, **arguments)


def test_length_adaptive_lambda_is_clamped_and_exact_for_long_responses() -> None:
    lengths = torch.tensor([0, 1, 5, 6, 6144])
    lam = length_adaptive_lambda(lengths, 0.17).tolist()
    assert lam[:3] == [0.0, 0.0, 0.0]
    assert lam[3] == pytest.approx(1 - 1 / (0.17 * 6), rel=1e-14)
    assert lam[4] == pytest.approx(1 - 1 / (0.17 * 6144), rel=1e-14)
    with pytest.raises(ValueError, match="length_adaptive_alpha is 0"):
        length_adaptive_lambda(lengths, 0.0)
