# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Tensors through a file come back bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from megacurl.rollout.servers.bucket_file import bucket_offsets, read_bucket, write_bucket
from megacurl.rollout.types import TensorMeta


def test_there_and_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tensors = [
        ("odd", torch.randn(3, 5)),
        ("half", torch.randn(7, 1).bfloat16()),
        ("turned", torch.randn(4, 6).t()),
        ("scalar", torch.tensor(1.5)),
        ("none", torch.empty(0, 4)),
        ("bytes", torch.arange(65, dtype=torch.uint8)),
        ("not a number", torch.tensor([torch.nan, -torch.inf])),
    ]
    path = tmp_path / "bucket"
    metas = write_bucket(path, tensors)
    assert metas == [TensorMeta.of(name, tensor) for name, tensor in tensors]
    assert path.stat().st_mode & 0o777 == 0o600
    found = dict(read_bucket(path.read_bytes(), metas))
    for name, tensor in tensors:
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape
        assert found[name].tolist() == tensor.tolist() or name == "not a number"
    assert found["not a number"].isnan()[0]
    offsets, size = bucket_offsets(metas)
    assert all(offset % 64 == 0 for offset in offsets) and size == path.stat().st_size


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bucket"
    metas = write_bucket(path, [("a", torch.ones(100))])
    with pytest.raises(ValueError, match="256 bytes, its tensors need 448"):
        list(read_bucket(path.read_bytes()[:256], metas))
    with pytest.raises(FileExistsError):
        write_bucket(path, [])
