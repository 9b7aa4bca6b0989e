# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A bucket of tensors as bytes one behind the other, each at a multiple of 64."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from megacurl.rollout.types import TensorMeta

_ALIGNED = 64


def bucket_offsets(metas: Sequence[TensorMeta]) -> tuple[list[int], int]:
    """First byte of every tensor, and the size of the whole."""
    offsets, end = [], 0
    for meta in metas:
        offsets.append(end)
        size = math.prod(meta.shape) * getattr(torch, meta.dtype).itemsize
        end += -(-size // _ALIGNED) * _ALIGNED
    return offsets, end


def write_bucket(path: Path, named_tensors: Sequence[tuple[str, Tensor]]) -> list[TensorMeta]:
    """Write a new file that only this user can read; return what lies in it."""
    metas = [TensorMeta.of(name, tensor) for name, tensor in named_tensors]
    offsets, size = bucket_offsets(metas)
    path.touch(mode=0o600, exist_ok=False)
    with path.open("r+b") as file:
        file.truncate(max(size, _ALIGNED))
    whole = torch.from_file(str(path), shared=True, size=max(size, _ALIGNED), dtype=torch.uint8)
    for (_, tensor), offset in zip(named_tensors, offsets, strict=True):
        flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        whole[offset : offset + flat.numel()].copy_(flat)
    return metas


def read_bucket(memory: Any, metas: Sequence[TensorMeta]) -> Iterator[tuple[str, Tensor]]:
    """(name, tensor) of a bucket, copied from ``memory``, anything with the buffer protocol.

    Raises ValueError if the memory is too small for ``metas``.
    """
    offsets, size = bucket_offsets(metas)
    whole = torch.frombuffer(bytearray(memory), dtype=torch.uint8)
    if whole.numel() < size:
        raise ValueError(f"the bucket has {whole.numel()} bytes, its tensors need {size}")
    for meta, offset in zip(metas, offsets, strict=True):
        dtype = getattr(torch, meta.dtype)
        count = math.prod(meta.shape) * dtype.itemsize
        yield meta.name, whole[offset : offset + count].view(dtype).reshape(meta.shape)
