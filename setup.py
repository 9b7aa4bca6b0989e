# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Build script: the compiled operators of ``csrc/`` become ``megacurl/_C.abi3.so``.

The metadata is in pyproject.toml. Where torch can't be found (pip's build isolation) or there is no
C++ compiler, nothing is compiled: the package then runs its plain PyTorch references. Two ways that
compile, both with torch installed::

    python setup.py build_ext --inplace
    pip install --no-build-isolation .

Environment: ``MC_BUILD`` = auto | 0 | 1 (1: an error where nothing can be compiled), ``MC_CUDA`` =
auto | 0 | 1 (auto: when nvcc is found), ``MC_CUDA_ARCH`` (default "80;90"), ``CUDA_HOME``
(default /usr/local/cuda), ``MC_EMU`` = 0 | 1 (the emulated kernels as ``torch.ops.megacurl_emu``),
``MC_TORCH_TARGET`` (oldest torch the binary runs with, default "2.13", or "2.10" on an older one),
``CXX``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CSRC = Path("csrc")  # relative to the folder of this file, where setuptools runs it
OLDEST_TORCH = (2, 10)  # the first whose stable ABI has what csrc/binding uses
STREAM_TORCH = (2, 13)  # the first whose stable ABI hands out streams
CXX_FLAGS = [
    *(
        "-O3",
        "-g0",
        "-std=c++20",
        "-fvisibility=hidden",
        "-Wall",
        "-Wno-psabi",
        "-Wno-unknown-pragmas",
    ),
    *("-fno-math-errno", "-fno-trapping-math"),
]
NVCC_FLAGS = [
    *("-O3", "-std=c++17", "-lineinfo", "-cudart=static"),
    *("-Xcompiler", "-fPIC,-fvisibility=hidden"),
]


def switch(name: str, default: str) -> str:
    """Return the value of an environment variable that is auto, 0 or 1."""
    value = os.environ.get(name, default)
    if value not in ("auto", "0", "1"):
        raise SystemExit(f"{name} is {value!r}; use auto, 0 or 1")
    return value


def find_torch() -> tuple[Path, tuple[int, int]] | None:
    """Return torch's folder and version, without importing it (that takes seconds)."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    version = re.search(r"'(\d+)\.(\d+)", (folder / "version.py").read_text("utf-8"))
    return (folder, (int(version[1]), int(version[2]))) if version else None


def why_not_built() -> str | None:
    """Return the reason why the operators can't be compiled here, or None."""
    torch = find_torch()
    if switch("MC_BUILD", "auto") == "0":
        return "MC_BUILD is 0"
    if torch is None:
        return "torch is not installed (or hidden by pip's build isolation)"
    if torch[1] < OLDEST_TORCH:
        return f"torch {torch[1][0]}.{torch[1][1]} is older than 2.10"
    if shutil.which(os.environ.get("CXX", "g++").split()[0]) is None:
        return "there is no C++ compiler (g++, or CXX)"
    return None


def find_nvcc() -> Path | None:
    """Return nvcc, or None where the CUDA kernels are not wanted or can't be compiled."""
    wanted = switch("MC_CUDA", "auto")
    nvcc = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin" / "nvcc"
    if wanted == "0":
        return None
    if nvcc.is_file():
        return nvcc
    if wanted == "1":
        raise SystemExit(f"MC_CUDA is 1 but there is no {nvcc}; set CUDA_HOME")
    return None


def torch_target(version: tuple[int, int]) -> tuple[int, int]:
    """Return the torch version whose stable ABI the binary uses."""
    named = os.environ.get("MC_TORCH_TARGET")
    if named is None:
        return STREAM_TORCH if version >= STREAM_TORCH else OLDEST_TORCH
    match = re.fullmatch(r"(\d+)\.(\d+)", named)
    if match is None or not OLDEST_TORCH <= (int(match[1]), int(match[2])) <= version:
        raise SystemExit(
            f"MC_TORCH_TARGET is {named!r}; it must lie between 2.10 and the installed "
            f"{version[0]}.{version[1]}"
        )
    return int(match[1]), int(match[2])


def extension() -> Extension:
    """Describe ``megacurl._C``; the CUDA object is added when it is built."""
    found = find_torch()
    assert found is not None
    torch, version = found
    target = torch_target(version)
    nvcc, with_emu = find_nvcc(), switch("MC_EMU", "0") == "1"
    archs = os.environ.get("MC_CUDA_ARCH", "80;90")
    info = f"torch_target={target[0]}.{target[1]} cuda={archs.replace(';', ',') if nvcc else '-'}"
    sources = ["binding/ops.cpp", "cpu/backend.cpp"]
    sources += [f"cpu/kernels_{isa}.cpp" for isa in ("base", "avx2", "avx512")]
    sources += ["emu/launch_emu.cpp"] if with_emu else []
    return Extension(
        "megacurl._C",
        [str(CSRC / source) for source in sources],
        depends=[str(p) for p in sorted(CSRC.rglob("*")) if p.is_file()],
        include_dirs=[str(CSRC / "include"), str(CSRC)],
        define_macros=[
            ("TORCH_STABLE_ONLY", None),
            ("TORCH_TARGET_VERSION", f"0x{target[0]:02x}{target[1]:02x}000000000000"),
            ("MC_WITH_CUDA", str(int(nvcc is not None))),
            ("MC_WITH_EMU", str(int(with_emu))),
            ("MC_BUILD_INFO", f'"{info} emu={int(with_emu)}"'),
        ],
        extra_compile_args=[*CXX_FLAGS, "-isystem", str(torch / "include")],
        # A compiler whose default is --as-needed would drop libtorch, through which a CUDA build of
        # torch is reached.
        extra_link_args=["-Wl,--no-as-needed", f"-L{torch / 'lib'}", "-ltorch", "-ltorch_cpu"],
        py_limited_api=True,
    )


class BuildExtension(build_ext):
    """Compiles the CUDA kernels with nvcc first, which sees no torch header."""

    def build_extensions(self) -> None:
        nvcc = find_nvcc()
        if nvcc is not None:
            for built in self.extensions:
                built.extra_objects = [str(self.compile_cuda(nvcc)), *self.cuda_runtime(nvcc)]
                built.extra_link_args += ["-ldl", "-lrt", "-lpthread"]
        super().build_extensions()

    def compile_cuda(self, nvcc: Path) -> Path:
        """Compile csrc/cuda/launch.cu for every architecture, and PTX for those to come."""
        target = Path(self.build_temp).resolve() / "launch_cuda.o"
        target.parent.mkdir(parents=True, exist_ok=True)
        archs = os.environ.get("MC_CUDA_ARCH", "80;90").split(";")
        generate = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in archs]
        generate.append(f"-gencode=arch=compute_{archs[-1]},code=compute_{archs[-1]}")
        command = [str(nvcc), *NVCC_FLAGS, *generate, f"-I{CSRC / 'include'}", f"-I{CSRC}"]
        subprocess.check_call([*command, "-c", str(CSRC / "cuda/launch.cu"), "-o", str(target)])
        return target

    @staticmethod
    def cuda_runtime(nvcc: Path) -> list[str]:
        """Return the static CUDA runtime: the binary loads on machines without a driver."""
        home = nvcc.parents[1]
        folders = [home / "lib64", *sorted(home.glob("targets/*/lib")), home / "lib"]
        for folder in folders:
            if (folder / "libcudart_static.a").is_file():
                return [str(folder / "libcudart_static.a")]
        raise SystemExit(f"there is no libcudart_static.a in {home}; set CUDA_HOME, or MC_CUDA=0")


reason = why_not_built()
if reason is not None:
    if switch("MC_BUILD", "auto") == "1":
        raise SystemExit(f"MC_BUILD is 1 but {reason}")
    print(f"megacurl: the compiled operators are not built: {reason}", file=sys.stderr)
    setup()
else:
    setup(
        ext_modules=[extension()],
        cmdclass={"build_ext": BuildExtension},
        options={"bdist_wheel": {"py_limited_api": "cp311"}},
    )
