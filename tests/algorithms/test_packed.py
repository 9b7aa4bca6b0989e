# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Layout checks and per-sequence reductions of packed batches."""

from __future__ import annotations

import math

import pytest
import torch

from megacurl.algorithms.packed import (
    check_packed,
    check_per_sequence,
    expand,
    first_valid_index,
    last_valid_index,
    latest_valid_index,
    segment_ids,
    segment_mean,
    segment_sum,
    valid_lengths,
)
from tests.algorithms.batches import LENGTHS, make_batch, noise

EMPTY_MASK = torch.zeros(0, dtype=torch.bool)


def cu(*offsets: int) -> torch.Tensor:
    return torch.tensor(offsets, dtype=torch.int32)


def test_reductions_equal_a_loop_over_sequences() -> None:
    batch, x = make_batch(), noise(make_batch(), 1)
    poisoned = batch.poisoned(x)
    parts = x.split(batch.lengths)
    masks = batch.mask.split(batch.lengths)
    counts = [int(m.sum()) for m in masks]
    assert valid_lengths(batch.mask, batch.cu_seqlens).tolist() == counts
    sums = torch.stack([p[m].sum() for p, m in zip(parts, masks, strict=True)])
    torch.testing.assert_close(segment_sum(poisoned, batch.mask, batch.cu_seqlens), sums)
    means = sums / torch.tensor(counts).clamp(min=1)
    torch.testing.assert_close(segment_mean(poisoned, batch.mask, batch.cu_seqlens), means)
    ids = [b for b, n in enumerate(LENGTHS) for _ in range(n)]
    assert segment_ids(batch.cu_seqlens, batch.mask.numel()).tolist() == ids
    labels = torch.arange(len(LENGTHS)) * 10
    assert expand(labels, batch.cu_seqlens, batch.mask.numel()).tolist() == [10 * b for b in ids]


def test_sum_of_a_sequence_does_not_depend_on_its_batch() -> None:
    batch, x = make_batch(), noise(make_batch(), 1, torch.float32)
    whole = segment_sum(x, batch.mask, batch.cu_seqlens)
    for b in range(len(LENGTHS)):
        part, (y,) = batch.part([b], x)
        assert torch.equal(segment_sum(y, part.mask, part.cu_seqlens), whole[b : b + 1])


def test_masked_nan_has_gradient_zero() -> None:
    batch = make_batch()
    x = batch.poisoned(noise(batch, 1)).requires_grad_()
    segment_mean(x, batch.mask, batch.cu_seqlens).square().sum().backward()
    assert x.grad is not None
    assert bool((x.grad[~batch.mask] == 0).all()) and bool((x.grad[batch.mask] != 0).all())


def test_first_and_last_valid_index_stay_inside_their_sequence() -> None:
    mask = torch.tensor([1, 1, 0, 0, 0, 1, 0], dtype=torch.bool)
    offsets = cu(0, 3, 3, 5, 7)
    assert first_valid_index(mask, offsets).tolist() == [0, -1, -1, 5]
    assert first_valid_index(mask.flip(0), offsets).tolist() == [1, -1, -1, 5]
    assert first_valid_index(mask, cu(0, 5, 7, 7)).tolist() == [0, 5, -1]
    assert first_valid_index(mask[2:5], cu(0, 1, 3)).tolist() == [-1, -1]
    assert last_valid_index(mask, offsets).tolist() == [1, -1, -1, 5]
    assert latest_valid_index(mask, offsets).tolist() == [0, 1, 1, -1, -1, 5, 5]


@pytest.mark.parametrize("offsets", [(0,), (0, 0), (0, 0, 0)])
def test_batches_without_tokens(offsets: tuple[int, ...]) -> None:
    bounds = cu(*offsets)
    check_packed(EMPTY_MASK, bounds)
    assert segment_sum(torch.zeros(0), EMPTY_MASK, bounds).tolist() == [0.0] * (len(offsets) - 1)
    assert first_valid_index(EMPTY_MASK, bounds).tolist() == [-1] * (len(offsets) - 1)
    assert last_valid_index(EMPTY_MASK, bounds).tolist() == [-1] * (len(offsets) - 1)
    assert latest_valid_index(EMPTY_MASK, bounds).numel() == 0


@pytest.mark.parametrize(
    ("mask", "offsets", "message"),
    [
        (torch.ones(3), cu(0, 3), "mask is torch.float32"),
        (torch.ones(1, 3, dtype=torch.bool), cu(0, 3), "1-D"),
        (torch.ones(3, dtype=torch.bool), cu(0, 2), "from 0 to 2 for 3 tokens"),
        (torch.ones(3, dtype=torch.bool), cu(1, 3), "from 1 to 3"),
        (torch.ones(3, dtype=torch.bool), cu(0, 2, 1, 3), "decreases"),
        (torch.ones(3, dtype=torch.bool), torch.tensor([0.0, 3.0]), "cu_seqlens is torch.float32"),
    ],
)
def test_bad_layouts_are_refused(mask: torch.Tensor, offsets: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_packed(mask, offsets)


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(ValueError, match=r"values has shape \(2,\)"):
        check_packed(torch.ones(3, dtype=torch.bool), cu(0, 3), values=torch.zeros(2))
    with pytest.raises(ValueError, match=r"outcome has shape \(2,\)"):
        check_per_sequence(cu(0, 3), outcome=torch.full((2,), math.nan))
