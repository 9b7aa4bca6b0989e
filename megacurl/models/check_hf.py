# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Whether an HF folder can be loaded, found out in a moment: nothing but headers is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from megacurl.config.errors import ConfigError, about, raise_problems
from megacurl.models.family import load_shape
from megacurl.models.safetensors_header import TensorInfo, read_folder
from megacurl.models.shape import ModelShape

_DTYPES = ("F64", "F32", "F16", "BF16")
_TRUNK = "model."
_HEAD = ("lm_head.weight",)
_BUFFER = re.compile(r"rotary_emb\.inv_freq$")  # old checkpoints keep it; it is computed
_SHOWN = 3


def check_hf_folder(
    folder: str | Path, flag: str, vocab_divisible_by: int, *, skip_head: bool
) -> ModelShape:
    """The shape of the model in ``folder``, after its files were compared with it.

    Args:
        folder: HF folder.
        flag: the flag that named it, for messages.
        vocab_divisible_by: ``--make-vocab-size-divisible-by``.
        skip_head: the output layer is not read (a critic's trunk).

    Raises:
        ConfigError: naming flag, file and fix, for a model family, a config.json or weights that
            cannot be used: files missing, cut or damaged; tensors missing, of another shape, of a
            quantised type, or of layers that config.json does not have.
    """
    with about(flag):
        family, shape = load_shape(folder)
        found = read_folder(folder)
        parameters = family.weight_map(shape, vocab_divisible_by).parameters()
        wanted = [name for p in parameters for name in p.hf if not (skip_head and name in _HEAD)]
        expected = _shapes(folder)
        raise_problems(
            [
                *_missing(wanted, found, folder),
                *_misshapen(wanted, found, expected),
                *_surplus(wanted, found, folder),
            ]
        )
    return shape


def _shapes(folder: str | Path) -> dict[str, tuple[int, ...]]:
    """Tensor name -> shape as transformers, and so the rollout engine, builds the model."""
    try:
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception as error:
        raise ConfigError(
            f"transformers cannot build the model of {Path(folder) / 'config.json'} "
            f"({_first_line(error)}); correct the file or download it again"
        ) from error
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _missing(
    wanted: list[str], found: Mapping[str, TensorInfo], folder: str | Path
) -> Iterator[str]:
    absent = [name for name in wanted if name not in found]
    if absent:
        yield (
            f"the weights in {folder} lack {_listed(absent)}; config.json and weights do not "
            "belong together, or a file is missing: download the model again"
        )


def _misshapen(
    wanted: list[str], found: Mapping[str, TensorInfo], expected: Mapping[str, tuple[int, ...]]
) -> Iterator[str]:
    for name in wanted:
        info = found.get(name)
        if info is None:
            continue
        if info.dtype not in _DTYPES:
            yield (
                f"{info.file}: tensor {name!r} is of type {info.dtype}; give weights in one of "
                f"{', '.join(_DTYPES)}, quantised ones cannot be trained"
            )
            return
        if info.shape != expected.get(name, info.shape):
            yield (
                f"{info.file}: tensor {name!r} has shape {list(info.shape)}, config.json asks for "
                f"{list(expected[name])}; give the config.json and the weights of one model"
            )
            return


def _surplus(
    wanted: list[str], found: Mapping[str, TensorInfo], folder: str | Path
) -> Iterator[str]:
    """Parts of the trunk that would be left out silently. Other heads are no part of it."""
    known = set(wanted)
    extra = [n for n in found if n.startswith(_TRUNK) and n not in known and not _BUFFER.search(n)]
    if extra:
        yield (
            f"the weights in {folder} hold {_listed(extra)}, which config.json knows nothing of; "
            "give the config.json and the weights of one model"
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more tensors" if len(names) > _SHOWN else "")


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
