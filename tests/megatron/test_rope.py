# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Our rotation of packs is Megatron's, forward and backward."""

from __future__ import annotations

import itertools

import pytest
import torch
from megatron.core.models.common.embeddings import rope_utils
from torch import Tensor

from megacurl.megatron import rope
from megacurl.megatron.rope import rotate_packed


def angles(longest: int, dim: int) -> Tensor:
    """As Megatron's RotaryEmbedding gives them."""
    inverse = 10000.0 ** (-torch.arange(0, dim, 2).float() / dim)
    half = torch.outer(torch.arange(longest).float(), inverse)
    return torch.cat([half, half], -1)[:, None, None, :]


def by_sequence(x: Tensor, cu_seqlens: Tensor, freqs: Tensor) -> Tensor:
    """What Megatron computes for one sequence after the other."""
    parts = [
        rope_utils._apply_rotary_pos_emb_bshd(x[a:b, None], freqs[: b - a])[:, 0]
        for a, b in itertools.pairwise(cu_seqlens.tolist())
    ]
    return torch.cat(parts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("lengths", [(5,), (2, 17, 1, 30), (3, 0, 4)])
def test_rotation_is_megatrons(lengths: tuple[int, ...], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    cu_seqlens = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
    freqs = angles(max(lengths), 8)
    found, expected = [], []
    for heads in (4, 2):  # queries, then keys, with the same tables
        x = torch.randn(sum(lengths), heads, 8, generator=generator).to(dtype)
        grad = torch.randn(x.shape, generator=generator).to(dtype)
        for results, function in ((found, rotate_packed), (expected, by_sequence)):
            leaf = x.clone().requires_grad_()
            rotated = function(leaf, cu_seqlens, freqs)
            rotated.backward(grad)
            results += [rotated.detach(), leaf.grad]
    bound = 1e-6 if dtype == torch.float32 else 0.04  # bfloat16: where the sum is rounded
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        assert bool(ours.abs().max() > 0.5)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=bound)


def test_tables_are_those_of_the_pack_at_hand() -> None:
    """Packs of equal size, and angles that Megatron keeps, must not be taken for each other."""
    x, freqs = torch.ones(6, 1, 8), angles(6, 8)
    packs = [torch.tensor(bounds, dtype=torch.int32) for bounds in ((0, 2, 6), (0, 4, 6))]
    for _ in range(2):
        for pack in packs:
            torch.testing.assert_close(
                rotate_packed(x, pack, freqs), by_sequence(x, pack, freqs), rtol=0, atol=1e-6
            )
    slower = freqs / 3
    torch.testing.assert_close(
        rotate_packed(x, packs[-1], slower), by_sequence(x, packs[-1], slower), rtol=0, atol=1e-6
    )
    made = rope._tables(packs[-1], slower, torch.float32)
    assert rope._tables(packs[-1], slower, torch.float32) is not made
    assert rope._tables(packs[-1], slower, torch.float32)[0] is made[0]  # once a forward pass


def test_refusals() -> None:
    x, pack = torch.ones(4, 1, 8), torch.tensor([0, 4], dtype=torch.int32)
    with pytest.raises(ValueError, match="context parallel size 2"):
        rotate_packed(x, pack, angles(4, 8), cp_size=2)
    with pytest.raises(ValueError, match="4 of 8 dimensions"):
        rotate_packed(x, pack, angles(4, 4))
