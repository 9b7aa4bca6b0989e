# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Loads ``megacurl/_C.abi3.so`` at the first use of an operator; chooses between it and PyTorch."""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor

from megacurl.ops.registration import register

Mode = Literal["auto", "reference"]

NAMES = (
    "value_stats",
    "group_mean",
    "gae",
    "cvpo_weights",
    "apply_weights",
    "policy_loss",
    "value_loss",
    "log_prob_sums",
    "log_prob_grad",
)
"""The operators of ``torch.ops.megacurl``."""

_VARIABLE = "MEGACURL_OPS"
_forced: Mode | None = None


@dataclass(frozen=True)
class BuildInfo:
    """What the compiled library holds."""

    path: Path
    torch_target: str
    """Oldest torch it runs with."""
    cuda_archs: tuple[str, ...]
    """Architectures it has CUDA kernels for, such as "90"; the last one also as PTX."""
    emulator: bool
    """Whether ``torch.ops.megacurl_emu`` is there."""
    cpu_isa: str
    """Instruction set that the CPU kernels use on this machine: base, avx2 or avx512."""


def mode() -> Mode:
    """Return "auto" (operators where they are usable) or "reference" (PyTorch everywhere).

    Set by the environment variable MEGACURL_OPS, and by :func:`using` for a part of a program.

    Raises:
        ValueError: when the variable is something else.
    """
    value = _forced or os.environ.get(_VARIABLE, "auto")
    if value not in ("auto", "reference"):
        raise ValueError(f"{_VARIABLE} is {value!r}; use 'auto' or 'reference'")
    return cast(Mode, value)


@contextmanager
def using(chosen: Mode) -> Iterator[None]:
    """Choose between operators and references inside a ``with`` block, for the whole process."""
    global _forced
    before, _forced = _forced, chosen
    try:
        yield
    finally:
        _forced = before


@functools.cache
def build_info() -> BuildInfo | None:
    """Load the library, and return what it holds; None where it was not built.

    Raises:
        OSError: when the file is there but can't be loaded, for instance beside an older torch.
    """
    # Not beside this file's own folder: setuptools puts megacurl._C into the package's top.
    files = sorted(Path(__file__).resolve().parents[1].glob("_C.*so"))
    if not files:
        return None
    path = files[0]
    torch.ops.load_library(path)
    library = ctypes.CDLL(str(path))
    library.megacurl_build_info.restype = library.megacurl_cpu_isa.restype = ctypes.c_char_p
    words = dict(word.split("=") for word in library.megacurl_build_info().decode().split())
    register("megacurl")
    if words["emu"] == "1":
        register("megacurl_emu")
    return BuildInfo(
        path=path,
        torch_target=words["torch_target"],
        cuda_archs=tuple(a for a in words["cuda"].split(",") if a != "-"),
        emulator=words["emu"] == "1",
        cpu_isa=library.megacurl_cpu_isa().decode(),
    )


def is_built() -> bool:
    """Whether the compiled library is there."""
    return build_info() is not None


def device_types() -> tuple[str, ...]:
    """Return the types of devices that the operators run on: of "cpu" and "cuda"."""
    info = build_info()
    if info is None:
        return ()
    return ("cpu", "cuda") if info.cuda_archs else ("cpu",)


def usable(*tensors: Tensor | None, dtype: torch.dtype | None = torch.float32) -> bool:
    """Whether an operator can take these tensors: all of ``dtype`` (None: any), on its devices.

    Warns once a process where the library was not built.
    """
    if mode() == "reference":
        return False
    if not is_built():
        _warn_once()
        return False
    given = [t for t in tensors if t is not None]
    return all(
        t.device == given[0].device and (dtype is None or t.dtype == dtype) for t in given
    ) and all(t.device.type in device_types() for t in given[:1])


@functools.cache
def _warn_once() -> None:
    if os.environ.get("RANK", "0") == "0":
        warnings.warn(
            "MegaCURL's compiled operators are not built: plain PyTorch runs in their place, which "
            "is slower and gives the same numbers. Build them by `python setup.py build_ext "
            f"--inplace` (needs g++), or set {_VARIABLE}=reference to be rid of this message.",
            RuntimeWarning,
            stacklevel=4,
        )
