# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What the compilers made: registers of the CUDA kernels, and symbols of the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from megacurl import ops
from tests.csrc.build import CSRC, HAS_COMPILER

NVCC = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin" / "nvcc"
ARCHS = ("80", "90")
MAX_REGISTERS = 64  # keeps eight blocks of 128 threads, or four of 256, on a multiprocessor
KERNELS = {
    "value_stats_kernel", "group_mean_kernel", "gae_kernel", "cvpo_weights_kernel",
    "apply_weights_kernel", "check_offsets_kernel", "policy_loss_kernel", "policy_total_kernel",
    "value_loss_kernel", "value_total_kernel", "log_prob_kernel", "log_prob_grad_kernel",
}  # fmt: skip


@pytest.mark.skipif(not NVCC.is_file(), reason="there is no nvcc")
def test_no_spills_no_local_memory_few_registers(tmp_path: Path) -> None:
    command = [str(NVCC), "-std=c++17", "-O3", f"-I{CSRC / 'include'}", f"-I{CSRC}"]
    command += [f"-gencode=arch=compute_{a},code=sm_{a}" for a in ARCHS]
    command += ["-Werror", "all-warnings"]
    command += ["-Xptxas", "-v,-warn-spills,-warn-lmem-usage", "-Xcompiler", "-fPIC", "-c"]
    done = subprocess.run(
        [*command, str(CSRC / "cuda" / "launch.cu"), "-o", str(tmp_path / "launch.o")],
        capture_output=True,
        text=True,
        check=False,
    )
    report = done.stdout + done.stderr
    assert done.returncode == 0, report[-4000:]
    found: dict[tuple[str, str], int] = {}
    for entry in report.split("Compiling entry function")[1:]:
        name = re.search(r"\d+([a-z_]+_kernel).*'sm_(\d+)'", entry)
        registers = re.search(r"Used (\d+) registers", entry)
        assert name and registers, entry
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in entry, entry
        key = name[1], name[2]
        found[key] = max(found.get(key, 0), int(registers[1]))
    print(f"registers: {found}")
    assert set(found) == {(kernel, arch) for kernel in KERNELS for arch in ARCHS}
    assert max(found.values()) <= MAX_REGISTERS, found


@pytest.mark.skipif(not ops.is_built(), reason="the operators are not built")
@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm")
def test_only_c_symbols_of_torch_are_used() -> None:
    """So one binary runs with every torch from the one it was built for on."""
    info = ops.build_info()
    assert info is not None
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", str(info.path)], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in symbols.stdout.splitlines()]
    assert any(name.startswith("aoti_torch_") for name in names)
    mangled = [n for n in names if re.match(r"_ZNK?(2at|3c10|5torch)", n)]
    assert not mangled


def test_the_library_is_built_where_it_can_be() -> None:
    """Otherwise every test of the operators would be skipped without a word."""
    if not HAS_COMPILER or os.environ.get("MEGACURL_SKIP_BUILD") == "1":
        pytest.skip("nothing to build with")
    assert ops.is_built(), "run python setup.py build_ext --inplace"
