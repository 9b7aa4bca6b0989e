# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Reading golden cases: files, ragged lists to packed tensors and back, and the comparison."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DEFAULT_DIR = Path(__file__).resolve().parent.parent / "golden"
GOLDEN_DIR = Path(os.environ.get("MEGACURL_GOLDEN_DIR", DEFAULT_DIR))

Case = dict[str, Any]
Inputs = dict[str, Any]
Outputs = dict[str, Any]


def load_cases() -> list[Case]:
    files = sorted(GOLDEN_DIR.glob("*.json"))
    if not files:
        raise FileNotFoundError(f"no golden files in {GOLDEN_DIR}; check MEGACURL_GOLDEN_DIR")
    cases: list[Case] = []
    for path in files:
        content = json.loads(path.read_text())
        cases += [
            {**case, "file": content["file"], "tol": content["tol"]} for case in content["cases"]
        ]
    return cases


@dataclass
class Packed:
    """A ragged batch in packed form; token inputs get NaN wherever the mask is off."""

    mask: Tensor
    cu_seqlens: Tensor
    dtype: torch.dtype

    @classmethod
    def of(cls, masks: list[list[int]], dtype: torch.dtype) -> Packed:
        lengths = torch.tensor([0] + [len(m) for m in masks])
        flat = torch.tensor([x for m in masks for x in m], dtype=torch.bool)
        return cls(flat, lengths.cumsum(0).int(), dtype)

    def tokens(self, ragged: list[list[float]], *, grad: bool = False) -> Tensor:
        x = self.raw_tokens(ragged)
        x[~self.mask] = math.nan
        return x.requires_grad_(grad)

    def raw_tokens(self, ragged: list[list[float]]) -> Tensor:
        return torch.tensor([x for row in ragged for x in row], dtype=self.dtype)

    def ragged(self, packed: Tensor) -> list[list[float]]:
        return [part.tolist() for part in packed.split(self.cu_seqlens.diff().tolist())]

    def slice(self, sequences: list[int], *token_values: Tensor) -> tuple[Packed, list[Tensor]]:
        """Return the micro-batch that holds the given sequences, with its token values."""
        bounds = self.cu_seqlens.tolist()
        index = torch.cat([torch.arange(bounds[s], bounds[s + 1]) for s in sequences])
        lengths = torch.tensor([0] + [bounds[s + 1] - bounds[s] for s in sequences])
        part = Packed(self.mask[index], lengths.cumsum(0).int(), self.dtype)
        return part, [x[index] for x in token_values]


def tolerance(case: Case, dtype: torch.dtype) -> tuple[float, float]:
    """Return (rtol, atol) of a case in a precision."""
    if "abs_tol_1e-4" in case["tags"]:
        return 0.0, 1e-4
    tol = case["tol"][str(dtype).removeprefix("torch.")]
    rtol = tol["rtol"]
    if dtype == torch.float32 and {"extreme", "float64"} & set(case["tags"]):
        rtol = 1e-3
    return rtol, tol["atol"]


def compare(actual: Any, expected: Any, case: Case, dtype: torch.dtype) -> None:
    """Assert that ``actual`` has every number of ``expected``, within tolerance."""
    rtol, atol = tolerance(case, dtype)
    masks = case["inputs"].get("masks", case["inputs"].get("mask"))

    def walk(a: Any, e: Any, mask: Any, where: str) -> None:
        if e is None:
            return
        if isinstance(e, dict):
            missing = set(e) - set(a)
            assert not missing, f"{where}: nothing computes {sorted(missing)}"
            for key, value in e.items():
                walk(a[key], value, masks, f"{where}.{key}")
        elif isinstance(e, list):
            assert len(a) == len(e), f"{where}: {len(a)} entries, expected {len(e)}"
            # A number beside a list of masks belongs to a trajectory: only a 0 hides a number.
            use = mask if isinstance(mask, list) and len(mask) == len(e) else [None] * len(e)
            for i, (x, y) in enumerate(zip(a, e, strict=True)):
                walk(x, y, use[i], f"{where}[{i}]")
        elif isinstance(e, (str, bool)):
            assert a == e, f"{where}: {a!r}, expected {e!r}"
        elif mask != 0:
            limit = atol + rtol * abs(e)
            assert abs(float(a) - e) <= limit, f"{where}: {float(a)!r}, expected {e!r}"

    walk(actual, expected, masks, case["id"])
