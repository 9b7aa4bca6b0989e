# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Exact fingerprints of weights: equal if, and in practice only if, every bit is equal.

The trainer computes the same numbers on the tensors it sends, so one comparison of two hex
strings proves that an engine holds the trainer's weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import torch
from torch import Tensor

from megacurl.rollout.hashing import GOLDEN_GAMMA, mix64_
from megacurl.rollout.types import dtype_name

_WORD = 8
_CHUNK_WORDS = 1 << 16  # 512 KiB: the in-place passes stay in cache
_MASK = (1 << 64) - 1


def tensor_digest(tensor: Tensor) -> int:
    """64-bit digest of a tensor's bit pattern, shape and dtype.

    Each 8-byte word of the row-major contents is mixed with its position, and the mixed words are
    summed modulo 2**64. The sum does not depend on the order of evaluation, so a CPU and a GPU
    give the same number, while a changed bit or two exchanged rows do not.

    Args:
        tensor: any shape, any dtype of 1, 2, 4 or 8 bytes, any device; it is not modified.

    Returns:
        int in [0, 2**64).
    """
    total = 0
    offset = 0
    words = _as_words(tensor.detach())
    for chunk in words.split(_CHUNK_WORDS):
        index = torch.arange(offset + 1, offset + 1 + len(chunk), device=chunk.device)
        total += int(mix64_(index.mul_(GOLDEN_GAMMA).add_(chunk)).sum().item())
        offset += len(chunk)
    header = f"{dtype_name(tensor.dtype)}{tuple(tensor.shape)}:{total & _MASK:016x}"
    return int.from_bytes(blake2b(header.encode(), digest_size=_WORD).digest(), "little")


def combine_digests(digests: Mapping[str, int]) -> str:
    """One hex digest (32 characters) of named tensor digests; the order of names is irrelevant."""
    hasher = blake2b(digest_size=16, person=b"megacurl-weights")
    for name in sorted(digests):
        raw = name.encode()
        hasher.update(len(raw).to_bytes(8, "little"))
        hasher.update(raw)
        hasher.update(digests[name].to_bytes(_WORD, "little"))
    return hasher.hexdigest()


def _as_words(tensor: Tensor) -> Tensor:
    """Row-major bytes of ``tensor`` as int64 [words], the last word padded with zero bytes."""
    flat = tensor.contiguous().reshape(-1)
    raw = flat.view(torch.uint8)
    tail = raw.numel() % _WORD
    misaligned = (flat.storage_offset() * flat.element_size()) % _WORD
    if tail or misaligned:
        padded = raw.new_zeros(raw.numel() + (_WORD - tail) % _WORD)
        padded[: raw.numel()] = raw
        raw = padded
    return raw.view(torch.int64)
