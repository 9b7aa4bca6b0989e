# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The composition: lambdas, truncation, and CVPO's weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from megacurl.algorithms.advantages import (
    apply_weights,
    stochasticity_amplitudes,
    trajectory_weights,
)
from megacurl.algorithms.gae import gae, length_adaptive_lambda, place_outcome
from megacurl.algorithms.packed import valid_lengths
from megacurl.algorithms.truncation import overlong_filter, truncation_bootstrap
from megacurl.config.schema import AlgorithmConfig, CVPOConfig
from tests.algorithms.batches import (
    LENGTHS,
    Batch,
    advantages_and_targets,
    make_batch,
    noise,
)

CVPO = AlgorithmConfig()
OUTCOME = torch.tensor([1.0, -1.0, 1.0, 1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
GROUP = torch.tensor([0, 0, 0, 1, 1, 1, 1])
SPREAD = torch.tensor([0.05, 0.0, 0.0, 0.0, 0.09, 0.02, 0.11], dtype=torch.float64)
W_D = torch.tensor([1.2] * 3 + [0.7] * 4, dtype=torch.float64)


def run(
    batch: Batch, values: Tensor, config: AlgorithmConfig, **options: object
) -> tuple[Tensor, Tensor]:
    return advantages_and_targets(
        values,
        OUTCOME,
        batch.mask,
        batch.cu_seqlens,
        config,
        **options,
    )


def test_actor_and_critic_have_their_own_lambda() -> None:
    batch = make_batch()
    values = noise(batch, 1)
    rewards = place_outcome(OUTCOME, batch.mask, batch.cu_seqlens)
    layout = (values, rewards, batch.mask, batch.cu_seqlens)
    lam = length_adaptive_lambda(valid_lengths(batch.mask, batch.cu_seqlens), 0.17)
    advantages, returns = run(batch, batch.poisoned(values), CVPO)
    assert torch.equal(advantages, gae(*layout, gamma=1.0, lam=lam)[0])
    assert torch.equal(returns, gae(*layout, gamma=1.0, lam=0.1)[1])
    fixed = replace(CVPO, length_adaptive_alpha=None, lam_policy=0.8)
    advantages, returns = run(batch, values, fixed, lam_critic=1.0)
    assert torch.equal(advantages, gae(*layout, gamma=1.0, lam=0.8)[0])
    assert torch.equal(returns, gae(*layout, gamma=1.0, lam=1.0)[1])


def test_bootstrap_changes_truncated_responses_only() -> None:
    batch = make_batch()
    values = noise(batch, 1)
    truncated = torch.tensor([True, False, False, False, False, False, False])
    ends = torch.full((7,), 0.4, dtype=torch.float64)
    config = replace(CVPO, truncation="bootstrap", lam_critic=1.0)
    plain = run(batch, values, replace(config, truncation="terminal"))
    adv, ret = run(batch, values, config, truncated=truncated, end_values=ends)
    first = slice(0, LENGTHS[0])
    assert torch.equal(adv[LENGTHS[0] :], plain[0][LENGTHS[0] :])
    torch.testing.assert_close(ret[first][batch.mask[first]], torch.full_like(
        ret[first][batch.mask[first]], 1.4))  # fmt: skip
    with pytest.raises(ValueError, match="end_values"):
        run(batch, values, config, truncated=truncated)
    with pytest.raises(ValueError, match=r"truncated has shape \(7,\)"):
        truncation_bootstrap(truncated, ends[:2])


def test_filtered_responses_leave_every_quantity() -> None:
    batch = make_batch()
    truncated = torch.tensor([True, False, False, False, False, False, True])
    mask = overlong_filter(batch.mask, truncated, batch.cu_seqlens)
    assert int(valid_lengths(mask, batch.cu_seqlens)[truncated].sum()) == 0
    filtered = Batch(mask, batch.cu_seqlens)
    advantages, returns = run(filtered, filtered.poisoned(noise(batch, 1)), CVPO)
    kept, _ = run(batch, noise(batch, 1), CVPO)
    assert torch.equal(advantages, torch.where(mask, kept, 0.0))
    assert bool((returns[~mask] == 0).all())


def test_weights_multiply_advantages_and_nothing_else() -> None:
    batch = make_batch()
    advantages, returns = run(batch, noise(batch, 1), CVPO)
    w_s, w_d = trajectory_weights(SPREAD, GROUP, OUTCOME > 0, W_D, CVPOConfig())
    weighted = apply_weights(advantages, w_s, w_d, batch.cu_seqlens)
    factor = torch.repeat_interleave(w_s * w_d, torch.tensor(LENGTHS))
    torch.testing.assert_close(weighted, advantages * factor)
    assert bool((weighted.sign() == advantages.sign()).all())
    assert torch.equal(returns, run(batch, noise(batch, 1), CVPO)[1])
    assert torch.equal(apply_weights(advantages, None, None, batch.cu_seqlens), advantages)
    with pytest.raises(ValueError, match=r"w_d has shape \(3,\)"):
        apply_weights(advantages, w_s, w_d[:3], batch.cu_seqlens)


def test_both_weights_off_is_vapo() -> None:
    off = CVPOConfig(use_w_s=False, use_w_d=False)
    w_s, w_d = trajectory_weights(SPREAD, GROUP, OUTCOME > 0, None, off)
    assert w_s.tolist() == w_d.tolist() == [1.0] * 7


def test_normalised_weights_have_mean_one() -> None:
    config = CVPOConfig(normalize_w=True)
    w_s, w_d = trajectory_weights(SPREAD, GROUP, OUTCOME > 0, W_D, config)
    assert float((w_s * w_d).mean()) == pytest.approx(1, rel=1e-12)
    include = torch.tensor([True, True, False, False, True, True, False])
    w_s, w_d = trajectory_weights(SPREAD, GROUP, OUTCOME > 0, W_D, config, include=include)
    assert float((w_s * w_d)[include].mean()) == pytest.approx(1, rel=1e-12)
    zero, _ = trajectory_weights(SPREAD, GROUP, OUTCOME > 0, W_D * 0, config)
    assert bool(zero.isfinite().all())


def test_the_coefficient_serves_both_amplitudes_and_cannot_flip_signs() -> None:
    assert stochasticity_amplitudes(CVPOConfig()) == (0.3, 0.3)
    assert stochasticity_amplitudes(CVPOConfig(ws_alpha_n=0.1)) == (0.3, 0.1)
    assert stochasticity_amplitudes(CVPOConfig(variance_coefficient=2, ws_alpha_n=1)) == (2, 1)
    for config in (CVPOConfig(ws_alpha_n=1.2), CVPOConfig(variance_coefficient=1.2)):
        with pytest.raises(ValueError, match=r"ws_alpha_n in \[0, 1\]"):
            trajectory_weights(SPREAD, GROUP, OUTCOME > 0, W_D, config)
    with pytest.raises(ValueError, match="ws_alpha_p must be at least 0"):
        stochasticity_amplitudes(CVPOConfig(ws_alpha_p=-0.1))


def test_w_s_goes_by_the_score_only_where_that_is_chosen() -> None:
    correct = OUTCOME > 0
    graded = torch.where(correct, 0.75, 0.25)
    by_score = CVPOConfig(ws_outcome="score")
    binary, _ = trajectory_weights(SPREAD, GROUP, correct, W_D, CVPOConfig())
    same, _ = trajectory_weights(SPREAD, GROUP, correct, W_D, CVPOConfig(), score=graded)
    ends, _ = trajectory_weights(SPREAD, GROUP, correct, W_D, by_score, score=correct.double())
    assert torch.equal(same, binary) and torch.equal(ends, binary)
    between, _ = trajectory_weights(SPREAD, GROUP, correct, W_D, by_score, score=graded)
    other, _ = trajectory_weights(SPREAD, GROUP, ~correct, W_D, CVPOConfig())
    torch.testing.assert_close(between, 0.75 * binary + 0.25 * other)
    for score in (None, graded[:2]):
        with pytest.raises(ValueError, match="ws_outcome is 'score' and score has shape"):
            trajectory_weights(SPREAD, GROUP, correct, W_D, by_score, score=score)


def test_missing_difficulty_is_named() -> None:
    for difficulty in (None, W_D[:2]):
        with pytest.raises(ValueError, match="difficulty has shape"):
            trajectory_weights(SPREAD, GROUP, OUTCOME > 0, difficulty, CVPOConfig())
