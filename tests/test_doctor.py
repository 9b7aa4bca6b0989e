# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl doctor`` tells the implementation of every operator, whatever is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from megacurl import doctor, ops
from megacurl.cli import main


def test_names_the_path_of_every_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    info = ops.build_info()
    expected = "PyTorch reference" if info is None else info.cpu_isa
    lines = doctor.main().splitlines()
    for name in ops.NAMES:
        (line,) = (line for line in lines if line.split()[:1] == [name])
        assert f"cpu: {expected}" in line
    monkeypatch.setenv("MEGACURL_OPS", "reference")
    assert doctor.main().count("cpu: PyTorch reference") == len(ops.NAMES)


def test_library_that_does_not_load_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("undefined symbol: torch_something")

    monkeypatch.setattr(ops, "build_info", broken)
    monkeypatch.setattr(ops, "device_types", broken)
    report = doctor.main()
    assert "can't be loaded: undefined symbol" in report and "PyTorch reference" in report


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "Compiled operators" in capsys.readouterr().out
    assert main(["doctor", "--what"]) == 2
    assert "--what" in capsys.readouterr().err


def test_a_missing_library_is_one_warning_and_the_same_numbers() -> None:
    program = """
import warnings, torch
from megacurl.ops import library
library.build_info = lambda: None
from megacurl.algorithms.gae import gae
x, mask, cu = torch.ones(3), torch.ones(3).bool(), torch.tensor([0, 3])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        advantages, _ = gae(x, x, mask, cu, gamma=1.0, lam=1.0)
print(len(seen), seen[0].message, advantages.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={k: v for k, v in os.environ.items() if k != "MEGACURL_OPS"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("1 MegaCURL's compiled operators are not built")
    assert "[2.0, 1.0, 0.0]" in done.stdout


def test_the_switch_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEGACURL_OPS", "fast")
    with pytest.raises(ValueError, match="MEGACURL_OPS is 'fast'"):
        ops.mode()
    with ops.using("reference"):
        assert ops.mode() == "reference"
