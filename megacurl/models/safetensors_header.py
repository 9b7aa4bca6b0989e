# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What safetensors files hold, from their headers alone: names, types and shapes, and no tensor.

A file is eight bytes (length n of the header, little endian), n bytes of JSON (tensor name ->
dtype, shape, data_offsets), and the data. A damaged or cut file shows in these without reading the
data.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from megacurl.config.errors import ConfigError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_MAX_HEADER_BYTES = 100_000_000  # the format's own limit
_AGAIN = "copy or download the file again"
_LFS = b"version https://git-lfs"


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor is, its safetensors type ("F32", "BF16", ...) and its shape."""

    file: Path
    dtype: str
    shape: tuple[int, ...]


def read_folder(folder: str | Path) -> dict[str, TensorInfo]:
    """Every tensor of a model folder by name, from the files that its index names.

    Raises ConfigError, which names file and fix: no weights, a damaged index, a file of it missing,
    cut or damaged, a tensor that is not where the index says.
    """
    folder = Path(folder)
    index = folder / INDEX
    if not index.is_file():
        return read_header(_single_file(folder))
    places = _read_index(index)
    missing = sorted({name for name in places.values() if not (folder / name).is_file()})
    if missing:
        raise ConfigError(f"{index} names files that are missing: {', '.join(missing)}; {_AGAIN}")
    headers = {name: read_header(folder / name) for name in sorted(set(places.values()))}
    absent = [tensor for tensor, name in places.items() if tensor not in headers[name]]
    if absent:
        tensor = absent[0]
        raise ConfigError(
            f"{folder / places[tensor]} lacks the tensor {tensor!r}, which {INDEX} places there"
            f"{_and_others(len(absent))}; index and files do not belong together, download both"
        )
    return {tensor: headers[name][tensor] for tensor, name in places.items()}


def read_header(file: Path) -> dict[str, TensorInfo]:
    """The tensors of one file. Raises ConfigError if it is cut, damaged or no safetensors file."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        if (start + stream.read(len(_LFS) - 8)) == _LFS:
            raise ConfigError(f"{file} is a Git LFS pointer, not the weights; run 'git lfs pull'")
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(_MAX_HEADER_BYTES, size - 8):
            raise ConfigError(
                f"{file} ({size:,} bytes) is truncated or no safetensors file: its header would be "
                f"{length:,} bytes long; {_AGAIN}"
            )
        stream.seek(8)
        raw = stream.read(length)
    try:
        header: dict[str, Any] = json.loads(raw)
        header.pop("__metadata__", None)
        found = {
            name: TensorInfo(file, str(entry["dtype"]), tuple(int(n) for n in entry["shape"]))
            for name, entry in header.items()
        }
        end = max((int(entry["data_offsets"][1]) for entry in header.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise ConfigError(f"{file} has a damaged header; {_AGAIN}") from None
    if size != 8 + length + end:
        what = "truncated" if size < 8 + length + end else "damaged"
        raise ConfigError(
            f"{file} is {what}: it has {size:,} bytes and its header describes "
            f"{8 + length + end:,}; {_AGAIN}"
        )
    _check_extents(file, header, found)
    return found


def _check_extents(file: Path, header: dict[str, Any], found: dict[str, TensorInfo]) -> None:
    """Every tensor of a type whose size is known must fill its place exactly."""
    bytes_of = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
    for name, info in found.items():
        begin, end = header[name]["data_offsets"][:2]
        width = bytes_of.get(info.dtype)
        if width is not None and end - begin != width * math.prod(info.shape):
            raise ConfigError(
                f"{file} has a damaged header: tensor {name!r} of shape {list(info.shape)} and "
                f"type {info.dtype} cannot have {end - begin:,} bytes; {_AGAIN}"
            )


def _single_file(folder: Path) -> Path:
    if (folder / SINGLE).is_file():
        return folder / SINGLE
    parts = sorted(folder.glob("*.safetensors"))
    if parts:
        raise ConfigError(
            f"{folder} has {parts[0].name}{_and_others(len(parts))} but neither {SINGLE} nor "
            f"{INDEX}; download the index too, or rename a single file to {SINGLE}"
        )
    raise ConfigError(
        f"{folder} has neither {SINGLE} nor {INDEX}; download the weights, or convert them to "
        "safetensors"
    )


def _read_index(index: Path) -> dict[str, str]:
    try:
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return {str(tensor): str(name) for tensor, name in places.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"{index} is damaged: no JSON object with a 'weight_map'; {_AGAIN}"
        ) from None


def _and_others(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
