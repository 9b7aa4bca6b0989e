# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl doctor``: what is installed here, and which implementation each operator runs with."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import torch

from megacurl import __version__, ops

PACKAGES = ("torch", "megatron-core", "transformers", "transformer-engine", "vllm", "sglang")


def main() -> str:
    """Return the report as text; it never fails for something that is merely missing."""
    lines = [f"MegaCURL {__version__} on Python {platform.python_version()}, {platform.machine()}"]
    lines += ["", "Packages"]
    lines += [f"  {name:<20}{_version(name)}" for name in PACKAGES]
    lines += ["", "Devices", f"  {'cpu':<20}{torch.get_num_threads()} threads"]
    lines += _cuda_devices()
    lines += ["", "Compiled operators (csrc/)", *_library(), "", "Operators run as"]
    lines += _paths()
    return "\n".join(lines)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cuda_devices() -> list[str]:
    if not torch.cuda.is_available():
        return [f"  {'cuda':<20}none"]
    lines = []
    for index in range(torch.cuda.device_count()):
        major, minor = torch.cuda.get_device_capability(index)
        name = f"{torch.cuda.get_device_name(index)}, sm_{major}{minor}"
        lines.append(f"  {f'cuda:{index}':<20}{name}")
    return lines


def _library() -> list[str]:
    try:
        info = ops.build_info()
    except OSError as error:
        return [f"  can't be loaded: {error}"]
    if info is None:
        return [
            "  not built; where torch and g++ are installed: python setup.py build_ext --inplace"
        ]
    archs = ", ".join(f"sm_{arch}" for arch in info.cuda_archs)
    return [
        f"  {'file':<20}{info.path}",
        f"  {'torch':<20}{info.torch_target} or newer",
        f"  {'cpu':<20}{info.cpu_isa}",
        f"  {'cuda':<20}{f'{archs}, newer ones by PTX' if archs else 'not built (no nvcc)'}",
        f"  {'emulator':<20}{'built' if info.emulator else 'not built (MC_EMU=1)'}",
    ]


def _paths() -> list[str]:
    """One line an operator: its implementation on a CPU, and on CUDA where there is a device."""
    try:
        info, types = ops.build_info(), ops.device_types()
    except OSError:
        info, types = None, ()
    forced = ops.mode() == "reference"
    lines = []
    for name in ops.NAMES:
        paths = []
        for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
            if forced or info is None or device not in types:
                paths.append(f"{device}: PyTorch reference")
            else:
                paths.append(f"{device}: {info.cpu_isa if device == 'cpu' else 'CUDA kernel'}")
        lines.append(f"  {name:<20}{'; '.join(paths)}")
    if forced:
        lines.append("  (MEGACURL_OPS=reference)")
    return lines
