# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Spread of the values, its group means, and W_S."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from megacurl import ops
from megacurl.algorithms.stochasticity import (
    group_mean_spread,
    stochasticity_weight,
    value_spread,
)
from tests.algorithms.batches import LENGTHS, make_batch, noise

AMPLITUDES = {"alpha_p": 0.3, "alpha_n": 0.3, "lambda_p": 50.0, "lambda_n": 50.0}


def weight(
    spread: list[float], mean: list[float], outcome: Sequence[bool | float], **options: object
) -> Tensor:
    arguments = {**AMPLITUDES, **options}
    return stochasticity_weight(
        torch.tensor(spread),
        torch.tensor(mean),
        torch.tensor(outcome),
        **arguments,
    )


def test_spread_survives_a_large_offset() -> None:
    values = torch.tensor([8000.0, 8000.5, 8001.0, 8000.5])  # exact in float32; x^2 is not
    mask, offsets = torch.ones(4, dtype=torch.bool), torch.tensor([0, 4])
    variance = value_spread(values, mask, offsets, stat="var")
    assert variance.tolist() == [0.125]
    constant = value_spread(torch.full((3,), 0.1), mask[:3], torch.tensor([0, 3]))
    assert constant.tolist() == [0.0]


def test_left_out_trajectories_do_not_move_the_mean() -> None:
    spread = torch.tensor([1.0, 3.0, 100.0, 7.0])
    group, correct = torch.tensor([5, 5, 5, -2]), torch.tensor([True, False, True, True])
    include = torch.tensor([True, True, False, False])
    mean = group_mean_spread(spread, group, correct, include=include)
    assert mean.tolist() == [2.0, 2.0, 2.0, 0.0]


def test_equation_and_prose_point_in_opposite_directions() -> None:
    spread, mean, correct = [0.2, 0.05, 0.2, 0.05], [0.1] * 4, [True, True, False, False]
    equation = weight(spread, mean, correct).tolist()
    prose = weight(spread, mean, correct, direction="prose").tolist()
    # Equation: unsteady correct responses gain, steady wrong ones are punished least.
    assert equation[0] > 1.15 > equation[1] > 1 and 1 > equation[2] > 0.85 > equation[3]
    assert prose[0] < 1.15 < prose[1] and prose[2] < 0.85 < prose[3]
    for e, p, middle in zip(equation, prose, [2.3, 2.3, 1.7, 1.7], strict=True):
        assert e + p == pytest.approx(middle, rel=1e-12)


def test_relative_scale_divides_by_the_mean() -> None:
    relative = weight([0.3, 0.0], [0.2, 0.0], [True, True], scale="relative", lambda_p=5.0)
    raw = weight([0.5, 0.0], [0.0, 0.0], [True, True], lambda_p=5.0)
    torch.testing.assert_close(relative, raw, rtol=1e-6, atol=0)


@pytest.mark.parametrize("mode", ["auto", "reference"])
@pytest.mark.parametrize("options", [{}, {"direction": "prose"}, {"scale": "relative"}], ids=str)
def test_a_score_mixes_the_two_equations(mode: ops.Mode, options: dict[str, object]) -> None:
    spread, mean = [0.13, 0.31, 0.05, 0.2], [0.1, 0.1, 0.2, 0.2]
    with ops.using(mode):
        right = weight(spread, mean, [True] * 4, alpha_n=0.4, **options)
        wrong = weight(spread, mean, [False] * 4, alpha_n=0.4, **options)
        ends = weight(spread, mean, [1.0, 0.0, 0.0, 1.0], alpha_n=0.4, **options)
        third = weight(spread, mean, [1 / 3] * 4, alpha_n=0.4, **options)
    binary = torch.tensor([True, False, False, True])
    assert torch.equal(ends, torch.where(binary, right, wrong))  # to the bit
    torch.testing.assert_close(third, right / 3 + wrong * 2 / 3, rtol=1e-7, atol=0)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_outside_is_named(score: float) -> None:
    with pytest.raises(ValueError, match=r"scores range from .* to .*; give \[0, 1\]"):
        weight([0.1, 0.1], [0.1, 0.1], [0.5, score])


def test_weights_never_turn_negative() -> None:
    extreme = weight([0.0, 1e6], [1e6, 0.0], [False, False], alpha_n=1.0, lambda_n=1e6)
    assert extreme.tolist() == [0.0, 1.0]
    for direction in ("equation", "prose"):
        w = weight([0.0, 1.0, 2.0], [1.0] * 3, [False] * 3, alpha_n=0.99, direction=direction)
        assert bool((w > 0).all())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha_n": 1.01}, r"ws_alpha_n is 1.01; it must lie in \[0, 1"),
        ({"alpha_p": -0.1}, "ws_alpha_p is -0.1"),
        ({"lambda_n": -1.0}, "ws_lambda_n is -1.0"),
        ({"direction": "text"}, "ws_direction is 'text'"),
        ({"scale": "log"}, "ws_scale is 'log'"),
    ],
)
def test_bad_settings_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weight([0.1], [0.1], [False], **options)


def test_bad_arguments_are_named() -> None:
    batch = make_batch()
    with pytest.raises(ValueError, match="ws_stat='mad'"):
        value_spread(noise(batch, 1), batch.mask, batch.cu_seqlens, stat="mad")
    one = torch.ones(len(LENGTHS))
    with pytest.raises(ValueError, match=r"group has shape \(2,\)"):
        group_mean_spread(one, torch.zeros(2), one.bool())
    with pytest.raises(ValueError, match="ws_mu is 'prompt'"):
        group_mean_spread(one, one.long(), one.bool(), over="prompt")
    assert group_mean_spread(one[:0], one[:0].long(), one[:0].bool()).shape == (0,)
