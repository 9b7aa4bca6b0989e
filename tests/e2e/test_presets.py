# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``bash examples/run_cvpo_tiny.sh --algorithm X --train-iters 3`` for every preset X.

Value-based ones on two tensor parallel ranks, the others on two data parallel ones. The script runs
up to the point where it becomes torchrun; what it hands over is then run as it stands, by the ranks
that the session shares. One preset goes all the way, through the real torchrun.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from megacurl.config.load import resolve_defaults
from megacurl.config.presets import PRESETS
from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.examples.bench import Bench
from tests.world import World

STEPS = 3


def has_critic(preset: str) -> bool:
    return resolve_defaults(preset).algorithm.use_critic


def flags_of(preset: str, base: Path, run_dir: Path) -> list[str]:
    """Of the script; a part of the held-out questions is enough here."""
    split = "tensor-model-parallel-size" if has_critic(preset) else "data-parallel-size"
    return [
        *("--algorithm", preset, "--train-iters", str(STEPS), f"--{split}", "2"),
        *("--base", str(base), "--run-dir", str(run_dir)),
        *("--eval-prompt-data", f"heldout={base / 'test.jsonl'}@[0:8]"),
    ]


@pytest.mark.parametrize("preset", PRESETS)
def test_tiny_run(
    world: Callable[[int], World], tiny_base: Path, tmp_path: Path, preset: str
) -> None:
    bench = Bench(tmp_path, tiny_base)
    started = bench.run("run_cvpo_tiny", *flags_of(preset, tiny_base, tmp_path / "run"))
    assert started.returncode == 0, started.stderr
    assert bench.processes == 2
    _, argv = bench.recorded()
    world(2).run(jobs.train_command, argv)
    check(tmp_path / "run", preset)


def test_tiny_run_by_torchrun(tiny_base: Path, tmp_path: Path) -> None:
    bench = Bench(tmp_path, tiny_base)
    (tmp_path / "bin" / "torchrun").unlink()  # the recorder stood in front of the real one
    done = bench.run("run_cvpo_tiny", *flags_of("cvpo", tiny_base, tmp_path / "run"), timeout=600)
    assert done.returncode == 0, done.stderr
    check(tmp_path / "run", "cvpo")


def check(run_dir: Path, preset: str) -> None:
    """All steps are there, with the parts that make the preset."""
    rows = read_rows(run_dir / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(STEPS + 1))
    assert "eval/heldout/avg@8" in rows[0] and "eval/heldout/avg@8" in rows[-1]
    last, value_based = rows[-1], has_critic(preset)
    assert last["actor/grad_norm"] > 0
    # The script lets critics warm up for two steps, in which the policy stays as it is.
    assert last["sync/version"] == STEPS - 2 * value_based
    assert any(name.startswith("critic/") for name in last) == value_based
    assert ("cvpo/sigma_mean" in last) == value_based
    if value_based:
        assert last["critic/grad_norm"] > 0
        assert (last["cvpo/w_s_mean"] != 1.0) == (preset in ("cvpo", "cvpo_stochasticity"))
    assert (last["cvpo/w_d_mean"] != 1.0) == (preset in ("cvpo", "cvpo_curriculum"))
    assert ("sampling/kappa" in last) == (preset == "vcrl")
    checkpoint = run_dir / "checkpoints" / f"step_{STEPS:06d}"
    assert (checkpoint / "critic").exists() == value_based
    assert (run_dir / "hf" / "model.safetensors").is_file()
    check_diagnostics(rows, value_based)
    weighted = preset in ("cvpo", "cvpo_stochasticity", "cvpo_curriculum")
    assert (last["cvpo/weight_ess"] < 1.0) == weighted


def check_diagnostics(rows: list[dict[str, float]], value_based: bool) -> None:
    """Everything is there, nothing of the critic's without one, and the parts make a whole."""
    row = rows[-1]
    mass = {name.rpartition("/")[2]: row[name] for name in row if name.startswith("advantage/")}
    assert set(mass) == {"correct", "wrong", "hard", "medium", "easy"}
    assert mass["correct"] + mass["wrong"] == pytest.approx(1.0)
    assert mass["hard"] + mass["medium"] + mass["easy"] == pytest.approx(1.0)
    assert 0 < row["cvpo/weight_ess"] <= 1 + 1e-12
    spent = [row["compute/total"] for row in rows]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(spent[0] + 2 * sum(row["time/step"] for row in rows[1:]))
    assert row["compute/train"] == pytest.approx(2 * sum(row["time/train"] for row in rows[1:]))
    shares = [row[name] for name in row if name.startswith("critic/reliability_share/")]
    assert (len(shares), sum(shares)) == ((10, pytest.approx(1.0)) if value_based else (0, 0))
    for name in (
        *("critic/brier", "critic/brier_end", "critic/brier_skill", "critic/calibration_error"),
        *("critic/ev_position/q1", "critic/ev_position/q4"),
        *("cvpo/sigma_entropy_corr", "cvpo/sigma_entropy_corr_within"),
    ):
        assert (name in row) == value_based, name
