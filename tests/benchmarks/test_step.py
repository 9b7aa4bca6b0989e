# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The step benchmark compares like with like, and its command line prints what it measured."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import device

from plain_ppo import PaddedBatch, Response
from step import make_random_base, report, scaling
from step_plan import NUMBERS, PHASES, TINY_RUN, Round, StepBench, Turn
from tests.benchmarks import step_jobs
from tests.world import World

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def base(tiny_model: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with questions beside it."""
    folder = tmp_path_factory.mktemp("step") / "base"
    shutil.copytree(tiny_model("qwen2-tied"), folder)
    # transformers gives the embedding of the padding token no gradient. The tiny models name a
    # token that every prompt contains; Megatron trains that, as it should.
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pad_token_id": None}))
    rows = [{"id": f"q{i}", "prompt": f"{i} + {i}?", "answer": str(2 * i)} for i in range(9)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize(("size", "epochs"), [(1, 2), (2, 2), (1, 1)])
def test_plain_ppo_computes_what_megacurl_does(
    world: Callable[[int], World], base: Path, tmp_path: Path, size: int, epochs: int
) -> None:
    """Losses and gradient norms agree after a first step, over two of ``epochs`` updates each."""
    bench = StepBench(
        base=str(base),
        run_dir=str(tmp_path / "run"),
        algorithm="ppo",
        verifier="coin_flip",
        prompts=4,
        samples=4,
        epochs=epochs,
        max_response=12,
        rounds=2,
    )
    rounds, *others = world(size).run(step_jobs.measure_rounds, bench)
    assert others == [rounds] * (size - 1)  # every rank reports the same
    assert len(rounds) == 2
    for number, r in enumerate(rounds):
        # The second epoch's ratio is not 1.
        assert (abs(r.plain.numbers["policy_loss"]) > 1e-4) == (epochs > 1)
        for name in NUMBERS:
            expected = pytest.approx(r.plain.numbers[name], rel=1e-4, abs=1e-6)
            assert r.megacurl.numbers[name] == expected, (number, name)
        for turn in (r.megacurl, r.plain):
            assert 0 <= turn.outside < turn.step
            assert all(turn.seconds[p] > 0 for p in ("generate", "log_prob", "train"))


def test_command_line(base: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "step.py"), "--base", str(base)]
    sizes = ["--prompts", "2", "--samples", "2", "--max-response", "6"]
    done = subprocess.run(
        [*command, *sizes, "--processes", "1", "--rounds", "1"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    milliseconds = {
        name: int(value) for name, value in re.findall(r"^(\w+) +(\d+) ms", done.stdout, re.M)
    }
    assert set(milliseconds) == {*PHASES, "outside", "step"}
    parts = sum(milliseconds.values()) - milliseconds["step"]
    assert parts == pytest.approx(milliseconds["step"], abs=6)  # one round: medians add up
    assert re.search(r"step against plain: [\d.]+x", done.stdout)


def a_round(ours: float, theirs: float) -> Round:
    seconds = {"generate": ours / 4, "log_prob": ours / 4, "train": ours / 4, "sync": ours / 8}
    plain = {"generate": theirs / 2, "log_prob": 0.0, "train": theirs / 2, "sync": 0.0}
    return Round(1000, 9, Turn(seconds, ours, {}), Turn(plain, theirs, {}))


def test_report() -> None:
    bench = StepBench(base="", run_dir="")
    one = [a_round(1.0, 2.0), a_round(9.0, 9.0), a_round(1.2, 2.0)]
    text = report(bench, 1, one)
    assert "step against plain: 0.60x (0.50 to 1.00 by round); outside of the phases: 12.5%" in text
    assert re.search(r"^step +1200 ms +2000 ms +0\.60x$", text, re.M)
    assert re.search(r"^train +300 ms +1000 ms +0\.30x$", text, re.M)
    assert scaling(one, [a_round(0.6, 1.5)], 2).endswith("MegaCURL 0.50x, plain 0.75x")


def test_settings_are_those_of_the_example() -> None:
    script = (ROOT / "examples" / "run_cvpo_tiny.sh").read_text()
    bench = StepBench(base="", run_dir="")
    assert f"--rollout-batch-size {bench.prompts}\n" in script
    assert f"--n-samples-per-prompt {bench.samples}\n" in script
    assert f"--rollout-max-response-len {bench.max_response}\n" in script
    for flag, value in zip(TINY_RUN[::2], TINY_RUN[1::2], strict=True):
        if flag != "--critic-warmup-iters":  # the benchmark times steps that train the actor
            assert re.search(rf"{flag} {re.escape(value)}[\s)]", script), flag


def test_padded_batch() -> None:
    batch = PaddedBatch.of(
        [Response([1, 2], [3], 1.0), Response([4], [5, 6, 7], -1.0)], device("cpu")
    )
    assert batch.tokens.tolist() == [[1, 2, 3, 0], [4, 5, 6, 7]]
    assert batch.predicts.int().tolist() == [[0, 1, 0, 0], [1, 1, 1, 0]]
    assert batch.targets.tolist() == [3, 5, 6, 7]
    assert batch.mask.int().tolist() == [[1, 0, 0], [1, 1, 1]]
    assert batch.rewards.tolist() == [1.0, -1.0]


def test_random_base(tmp_path: Path) -> None:
    make_random_base(tmp_path / "base")
    assert (tmp_path / "base" / "train.jsonl").is_file()
    generation = json.loads((tmp_path / "base" / "generation_config.json").read_text())
    assert len(generation["eos_token_id"]) == 25
