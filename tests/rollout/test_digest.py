# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Digests: exact, position-sensitive, and independent of device-irrelevant details."""

from __future__ import annotations

import pytest
import torch

from megacurl.rollout import combine_digests, tensor_digest
from megacurl.rollout.hashing import GOLDEN_GAMMA, mix64_

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
_MASK = (1 << 64) - 1


def _mix64_reference(state: int) -> int:
    """SplitMix64's finaliser in Python integers."""
    state ^= state >> 30
    state = state * 0xBF58476D1CE4E5B9 & _MASK
    state ^= state >> 27
    state = state * 0x94D049BB133111EB & _MASK
    return state ^ state >> 31


def test_mixer_equals_integer_arithmetic() -> None:
    words = torch.randint(-(2**63), 2**63 - 1, (200,), generator=torch.Generator().manual_seed(0))
    expected = [_mix64_reference(word & _MASK) for word in words.tolist()]
    assert [word & _MASK for word in mix64_(words.clone()).tolist()] == expected


def test_mixer_refuses_other_dtypes() -> None:
    with pytest.raises(TypeError, match="int64"):
        mix64_(torch.zeros(3, dtype=torch.int32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7,), (6, 5), (3, 1, 11), (1,), (0,)])
def test_same_bits_same_digest(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    digest = tensor_digest(tensor)
    assert 0 <= digest < 2**64
    assert tensor_digest(tensor.clone()) == digest
    # The same numbers behind other strides and at an odd storage offset.
    assert tensor_digest(tensor.t().contiguous().t() if tensor.ndim == 2 else tensor) == digest
    shifted = torch.cat([tensor.new_zeros(1), tensor.flatten()])[1:].view(shape)
    assert tensor_digest(shifted) == digest


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_single_bit_counts(dtype: torch.dtype) -> None:
    tensor = torch.randn(13, generator=torch.Generator().manual_seed(2)).to(dtype)
    raw = tensor.view(torch.uint8)
    digests = {tensor_digest(tensor)}
    for byte in range(raw.numel()):
        for bit in range(8):
            raw[byte] ^= 1 << bit
            digests.add(tensor_digest(tensor))
            raw[byte] ^= 1 << bit
    assert len(digests) == 1 + 8 * raw.numel()


@pytest.mark.parametrize("dtype", DTYPES)
def test_exchanged_rows_elements_and_signs(dtype: torch.dtype) -> None:
    tensor = torch.randn(64, 32, generator=torch.Generator().manual_seed(3)).to(dtype)
    digest = tensor_digest(tensor)
    for i, j in ((0, 1), (0, 63), (10, 42)):
        order = list(range(64))
        order[i], order[j] = j, i
        assert tensor_digest(tensor[order]) != digest
    swapped = tensor.clone()
    swapped[0, 0], swapped[0, 1] = tensor[0, 1], tensor[0, 0]
    assert tensor_digest(swapped) != digest
    assert tensor_digest(torch.zeros(8, dtype=dtype)) != tensor_digest(-torch.zeros(8, dtype=dtype))


def test_shape_and_dtype_count() -> None:
    tensor = torch.randn(6, 4)
    assert tensor_digest(tensor) != tensor_digest(tensor.view(4, 6))
    half = torch.ones(8, dtype=torch.float16)
    assert tensor_digest(half) != tensor_digest(half.view(torch.bfloat16))


def test_chunks_do_not_show() -> None:
    # 2**18 float32 are two chunks of the implementation: exchange them whole, then touch the last.
    tensor = torch.arange(1 << 18, dtype=torch.float32)
    digest = tensor_digest(tensor)
    assert tensor_digest(tensor.roll(1 << 17)) != digest
    tensor[-1] += 1
    assert tensor_digest(tensor) != digest


def test_digest_equals_its_definition() -> None:
    words = torch.tensor([5, -7, 2**62], dtype=torch.int64)
    gamma = GOLDEN_GAMMA & _MASK
    parts = [
        _mix64_reference((word + (i + 1) * gamma) & _MASK) for i, word in enumerate(words.tolist())
    ]
    from hashlib import blake2b

    header = f"int64(3,):{sum(parts) & _MASK:016x}".encode()
    expected = int.from_bytes(blake2b(header, digest_size=8).digest(), "little")
    assert tensor_digest(words) == expected


def test_combination_binds_names() -> None:
    a, b = tensor_digest(torch.ones(4)), tensor_digest(torch.zeros(4))
    together = combine_digests({"w1": a, "w2": b})
    assert together == combine_digests({"w2": b, "w1": a})
    assert together != combine_digests({"w1": b, "w2": a})
    assert together != combine_digests({"w1": a})
    assert len(together) == 32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", DTYPES)
def test_gpu_agrees(dtype: torch.dtype) -> None:
    tensor = torch.randn(1001, 33).to(dtype)
    assert tensor_digest(tensor.cuda()) == tensor_digest(tensor)
