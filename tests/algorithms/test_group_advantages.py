# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Group advantages: degenerate groups, the scale of rewards, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from megacurl.algorithms.group_advantages import grpo_advantages, rloo_advantages

RULES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sample": grpo_advantages,
    "population": lambda r, g: grpo_advantages(r, g, std="population"),
    "none": lambda r, g: grpo_advantages(r, g, std="none"),
    "rloo": rloo_advantages,
}


@pytest.mark.parametrize("name", RULES)
def test_equal_rewards_and_single_responses_have_no_advantage(name: str) -> None:
    # 0.1 has no exact mean over three; a rounded one would be blown up by the tiny std.
    rewards = torch.tensor([0.1, 0.1, 0.1, -7.0, 1e30, 1e30], dtype=torch.float64)
    group = torch.tensor([0, 0, 0, 1, 2, 2])
    assert RULES[name](rewards, group).tolist() == [0.0] * 6
    assert RULES[name](rewards[:0], group[:0]).tolist() == []


def test_standardised_groups_do_not_see_the_scale_of_rewards() -> None:
    correct, group = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0]), torch.zeros(5, dtype=torch.long)
    plain, signed = (grpo_advantages(r, group) for r in (correct, 2 * correct - 1))
    torch.testing.assert_close(plain, signed, rtol=1e-5, atol=0)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="grpo_std is 'std'"):
        grpo_advantages(torch.ones(2), torch.zeros(2), std="std")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"group \(3,\)"):
        rloo_advantages(torch.ones(2), torch.zeros(3))
