# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""HF safetensors straight into this rank's shards: only the needed rows and columns are read."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import torch
from megatron.core import parallel_state
from safetensors import safe_open

from megacurl.config.errors import ConfigError
from megacurl.megatron import groups
from megacurl.models.network import Network
from megacurl.models.safetensors_header import read_folder


class _Reader:
    """Slices of tensors, with every file opened once."""

    def __init__(self, files: dict[str, Path], stack: contextlib.ExitStack) -> None:
        self._files, self._stack = files, stack
        self._open: dict[Path, Any] = {}

    def slice(self, name: str) -> Any:
        if name not in self._files:
            raise KeyError(f"the checkpoint lacks the tensor {name!r}")
        path = self._files[name]
        if path not in self._open:
            self._open[path] = self._stack.enter_context(safe_open(path, framework="pt"))
        return self._open[path].get_slice(name)


def load_hf_weights(network: Network, folder: str | Path, *, skip_head: bool) -> None:
    """Fill this rank's parameters.

    Args:
        network: the rank's part of the model.
        folder: HF folder.
        skip_head: leave ``output_layer`` alone (a critic's value head is no HF tensor).

    Raises:
        ConfigError: if the files cannot be read, or hold NaN or infinity; on all ranks.
        ValueError: if a tensor has another shape than the model needs.
    """
    tp_rank = parallel_state.get_tensor_model_parallel_rank()
    tp_size = parallel_state.get_tensor_model_parallel_world_size()
    with contextlib.ExitStack() as stack, torch.no_grad():
        files = {name: info.file for name, info in read_folder(folder).items()}
        reader, broken = _Reader(files, stack), []
        for name, parameter, first_layer in network.local_parameters(skip_head=skip_head):
            entry = network.weight_map.find(name, first_layer)
            sources = [reader.slice(hf) for hf in entry.hf]
            shard = entry.cut.to_shard(sources, tp_rank, tp_size)
            if shard.shape != parameter.shape:
                raise ValueError(
                    f"{', '.join(entry.hf)} in {folder} gives shape {tuple(shard.shape)} for "
                    f"{entry.megatron}, the model has {tuple(parameter.shape)}; "
                    "config.json and weights do not belong together"
                )
            if not torch.isfinite(shard).all():
                broken.append(f"{folder}: NaN or infinity in {', '.join(entry.hf)}")
            parameter.copy_(shard)
    _refuse_broken(broken)


def _refuse_broken(local: list[str]) -> None:
    """Raise on all ranks what any of them has found; each reads other parts of the weights."""
    found = sorted(
        {problem for part in groups.current_grid().gather_objects(local) for problem in part}
    )
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ConfigError(
            f"{found[0]}{more}; a model with such weights cannot be trained: take an earlier "
            "checkpoint of it, or download it again"
        )
