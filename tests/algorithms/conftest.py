# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every test of the formulas runs twice: with the compiled operators, and with the references."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from megacurl import ops


@pytest.fixture(params=["operators", "reference"], autouse=True)
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "operators" and not ops.is_built():
        pytest.skip("the compiled operators are not built")
    with ops.using("auto" if request.param == "operators" else "reference"):
        yield


@pytest.fixture
def dtype(implementation: None, request: pytest.FixtureRequest) -> torch.dtype:
    """float32 for the operators, which take nothing wider; float64 for the references."""
    name = request.node.callspec.params["implementation"]
    return torch.float32 if name == "operators" else torch.float64
