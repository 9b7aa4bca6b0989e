# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Model folders are judged by their headers: what is whole passes, what is odd is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from megacurl.config.errors import ConfigError
from megacurl.models.check_hf import check_hf_folder
from megacurl.models.safetensors_header import read_header
from tests.tiny import KINDS, make_model

WEIGHTS = "model.safetensors"


def check(folder: Path, *, skip_head: bool = False) -> None:
    check_hf_folder(folder, "--hf-checkpoint", 128, skip_head=skip_head)


@pytest.mark.parametrize("kind", KINDS)
def test_every_family_passes(tiny_model: Callable[[str], Path], kind: str) -> None:
    check(tiny_model(kind))


def test_several_files_pass(tmp_path: Path) -> None:
    check(make_model(tmp_path / "sharded", "llama-untied", max_shard_size="20KB"))


def test_a_reward_model_is_a_critic_and_no_policy(
    tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """A critic's folder needs no LM head and may have a head of its own."""
    folder = shutil.copytree(tiny_model("llama-untied"), tmp_path / "model")
    tensors = load_file(folder / WEIGHTS)
    del tensors["lm_head.weight"]
    tensors["score.weight"] = torch.zeros(1, 32)
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(4)
    save_file(tensors, folder / WEIGHTS)
    check(folder, skip_head=True)
    with pytest.raises(ConfigError, match=r"lack 'lm_head\.weight'"):
        check(folder)


def header(**entries: Any) -> bytes:
    raw = json.dumps(entries).encode()
    return len(raw).to_bytes(8, "little") + raw


def tensor(dtype: str, shape: list[int], *offsets: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"\(0 bytes\) is truncated or no safetensors file"),
        (b"abc", r"\(3 bytes\) is truncated or no safetensors file"),
        ((1 << 62).to_bytes(8, "little") + b"{}", "is truncated or no safetensors file"),
        (b"PK\x03\x04" + b"\x00" * 40, "is truncated or no safetensors file"),
        (header(a=tensor("F32", [2], 0, 8)) + b"\x00" * 7, r"is truncated: it has \d+ bytes"),
        (header(a=tensor("F32", [2], 0, 8)) + b"\x00" * 9, r"is damaged: it has \d+ bytes"),
        (header(a=tensor("F32", [3], 0, 8)) + b"\x00" * 8, "'a' of shape .3. and type F32 cannot"),
        (header(a=tensor("F32", [2])), "has a damaged header"),
        (header(a=[1]), "has a damaged header"),
        ((2).to_bytes(8, "little") + b"[]", "has a damaged header"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / WEIGHTS
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read_header(file)
    assert str(file) in str(caught.value)


def test_header_is_what_was_saved(tmp_path: Path) -> None:
    file = tmp_path / WEIGHTS
    save_file({"a": torch.zeros(2, 3), "b": torch.zeros(0, dtype=torch.bfloat16)}, file)
    found = {name: (info.dtype, info.shape) for name, info in read_header(file).items()}
    assert found == {"a": ("F32", (2, 3)), "b": ("BF16", (0,))}
