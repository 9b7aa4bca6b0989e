# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every golden case against the public functions: values and gradients, in float64 and float32."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.algorithms.golden_handlers import HANDLERS
from tests.algorithms.golden_support import DEFAULT_DIR, GOLDEN_DIR, Case, compare, load_cases

# Quantities that have no function in megacurl.
NOT_OFFERED: set[str] = set()
# The same, in golden sets other than the one in this repository.
ALSO_NOT_OFFERED = {
    f"train_step:{algo}" for algo in ("rloo", "dapo", "gspo", "vcrl", "grpo_asyn", "async")
}

CASES = load_cases()


def quantity(case: Case) -> str:
    """Name what a case is about; an update is named by its algorithm, without a phase suffix."""
    if case["fn"] != "train_step":
        return str(case["fn"])
    algo = case["inputs"]["algo"]
    return "train_step:cvpo" if algo.startswith("cvpo") else f"train_step:{algo}"


def expected_of(case: Case) -> dict[str, Any]:
    """Return what must come out; ratios, which are not returned, by their largest distance to 1."""
    expected = dict(case["expected"])
    if case["fn"] == "ppo_policy_loss":
        ratios, masks = expected.pop("ratio"), case["inputs"]["masks"]
        gaps = [
            abs(r - 1)
            for row, mask in zip(ratios, masks, strict=True)
            for r, valid in zip(row, mask, strict=True)
            if valid
        ]
        expected["max_ratio_gap"] = max(gaps, default=0.0)
    return expected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=[f"{c['file']}/{c['id']}" for c in CASES])
def test_case(case: Case, dtype: torch.dtype) -> None:
    name = quantity(case)
    if name in NOT_OFFERED | ALSO_NOT_OFFERED:
        pytest.skip(f"not offered yet: {name}")
    assert name in HANDLERS, f"golden quantity {name!r} is unknown to this test"
    compare(HANDLERS[name](case["inputs"], dtype), expected_of(case), case, dtype)


def test_what_is_not_offered_is_known() -> None:
    named = {quantity(case) for case in CASES}
    without_function = named - set(HANDLERS)
    assert without_function <= NOT_OFFERED | ALSO_NOT_OFFERED
    assert not (NOT_OFFERED | ALSO_NOT_OFFERED) & set(HANDLERS)
    if GOLDEN_DIR == DEFAULT_DIR:
        assert without_function == NOT_OFFERED


def test_comparison_notices_wrong_missing_and_masked_numbers() -> None:
    tol = {"float64": {"rtol": 1e-9, "atol": 1e-12}}
    case = {"id": "x", "inputs": {"masks": [[1, 0], [1]]}, "tags": [], "tol": tol}
    expected = {"a": [[1.0, 0.0], [2.0]], "b": [3.0, None]}
    compare({"a": [[1.0, 9.0], [2.0]], "b": [3.0, 7.0]}, expected, case, torch.float64)
    for wrong in (
        {"a": [[1.0, 0.0], [2.1]], "b": [3.0, 0.0]},
        {"a": [[1.0, 0.0], [2.0]], "b": [3.1, 0.0]},
        {"a": [[float("nan"), 0.0], [2.0]], "b": [3.0, 0.0]},
        {"a": [[1.0, 0.0]], "b": [3.0, 0.0]},
        {"b": [3.0, 0.0]},
    ):
        with pytest.raises(AssertionError):
            compare(wrong, expected, case, torch.float64)
