# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder from tensors and a source folder: weights, config, tokenizer and all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from megacurl.models.safetensors_header import INDEX, SINGLE

_COMPANION_SUFFIXES = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".py", ".md")
_WEIGHT_INDEX = ".index.json"
_MAX_FILE_BYTES = 4_500_000_000


class HFWriter:
    """Writes tensors as they come into files of at most ``max_file_bytes``."""

    def __init__(self, folder: Path, max_file_bytes: int = _MAX_FILE_BYTES) -> None:
        self.folder, self.max_file_bytes = folder, max_file_bytes
        self._pending: dict[str, Tensor] = {}
        self._size = 0
        self._files: list[tuple[str, list[str]]] = []
        self._total = 0

    def add(self, named: Iterable[tuple[str, Tensor]]) -> None:
        """Take tensors; full files go to disk."""
        for name, tensor in named:
            tensor = tensor.detach().cpu().contiguous()
            size = tensor.numel() * tensor.element_size()
            if self._pending and self._size + size > self.max_file_bytes:
                self._flush()
            self._pending[name] = tensor
            self._size += size

    def _flush(self) -> None:
        name = f"part-{len(self._files)}.safetensors"
        save_file(self._pending, self.folder / name, metadata={"format": "pt"})
        self._files.append((name, list(self._pending)))
        self._total += self._size
        self._pending, self._size = {}, 0

    def close(self) -> None:
        """Write what is left and name the files as transformers expects them."""
        if self._pending:
            self._flush()
        if len(self._files) == 1:
            (self.folder / self._files[0][0]).rename(self.folder / SINGLE)
            return
        weight_map: dict[str, str] = {}
        for number, (file, names) in enumerate(self._files, start=1):
            final = f"model-{number:05d}-of-{len(self._files):05d}.safetensors"
            (self.folder / file).rename(self.folder / final)
            weight_map.update(dict.fromkeys(names, final))
        index = {"metadata": {"total_size": self._total}, "weight_map": weight_map}
        (self.folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def copy_companions(source: Path, target: Path, dtype: torch.dtype) -> None:
    """What makes ``source`` a model besides its weights: tokenizer, template, generation config,
    licence …; config.json gets the dtype of the exported weights."""
    for item in sorted(source.iterdir()):
        wanted = item.name.endswith(_COMPANION_SUFFIXES) or item.name.upper().startswith("LICENSE")
        if item.is_file() and wanted and not item.name.endswith(_WEIGHT_INDEX):
            shutil.copy2(item, target / item.name)
    config = json.loads((source / "config.json").read_text())
    name = str(dtype).removeprefix("torch.")
    key = "torch_dtype" if "torch_dtype" in config else "dtype"
    if config.get(key) != name:
        config[key] = name
        (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
