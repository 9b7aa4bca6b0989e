# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl eval`` with real models: tables against files, ranks, checkpoints, refusals."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from megacurl.evaluation.result import EvalResult
from megacurl.evaluation.settings import EvalArguments, read_inputs
from tests import jobs
from tests.evaluation import eval_jobs
from tests.rollout.conftest import NEEDS_VLLM
from tests.tiny import make_model
from tests.world import World

ROOT = Path(__file__).parents[2]
Worlds = Callable[[int], World]
Models = Callable[[str], Path]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "quiz.jsonl"
    rows = [
        {"id": f"q{i}", "prompt": f"What is {i} + {i}?", "answer": str(i % 3), "level": "ab"[i % 2]}
        for i in range(7)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def stored(output: Path, name: str = "quiz") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """results.json and the rows of the responses file, read without the package."""
    lines = (output / f"{name}.responses.jsonl").read_text().splitlines()
    return json.loads((output / "results.json").read_text()), [json.loads(line) for line in lines]


def recount(rows: list[dict[str, Any]], k: int) -> dict[str, float]:
    """avg@k, pass@2, pass@k and maj@k, written down again from their definitions."""
    by_question: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_question.setdefault(row["id"], []).append(row)
    pairs = majority = solved = 0.0
    for group in by_question.values():
        assert [row["sample"] for row in group] == list(range(k))
        right = [row["correct"] for row in group]
        hits = [right[i] or right[j] for i in range(k) for j in range(i)]
        pairs += sum(hits) / len(hits)
        solved += any(right)
        votes = Counter(row["extracted"] for row in group if row["extracted"] is not None)
        # most_common keeps the order of first appearance among equals.
        majority += bool(votes) and votes.most_common(1)[0][0] == group[0]["answer"]
    n = len(by_question)
    return {
        f"avg@{k}": sum(row["correct"] for row in rows) / len(rows),
        "pass@2": pairs / n,
        f"pass@{k}": solved / n,
        f"maj@{k}": majority / n,
    }


def test_table_equals_a_recount_and_ranks_change_nothing(
    world: Worlds, tiny_model: Models, tmp_path: Path, questions: Path
) -> None:
    model, data = tiny_model("qwen2-tied"), (f"quiz={questions}", f"part={questions}@[2:4]")
    outputs = [tmp_path / "one", tmp_path / "two"]
    for ranks, output in enumerate(outputs, start=1):
        assert world(ranks).run(eval_jobs.run_eval, model, data, output) == [""] * ranks
        names = sorted(path.name for path in output.iterdir())
        assert names == ["part.responses.jsonl", "quiz.responses.jsonl", "results.json"]
    results, rows = stored(outputs[0])
    assert len(rows) == 21
    entry = results["sets"]["quiz"]
    scores = {name: score["value"] for name, score in entry["scores"].items()}
    expected = recount(rows, k=3)
    assert 0 < expected["avg@3"] < expected["pass@3"]  # or the test would show nothing
    assert {name: scores[name] for name in expected} == pytest.approx(expected)
    assert entry["unparsed"] == sum(row["extracted"] is None for row in rows) / 21
    for row in rows:
        verdict = eval_jobs.length_class(row["text"], row["answer"], finished=True)
        assert (verdict.correct, verdict.extracted) == (row["correct"], row["extracted"])
        assert row["tokens"] <= 12 and (row["finish_reason"] == "length") <= (row["tokens"] == 12)
    assert stored(outputs[1])[1] == rows
    part = stored(outputs[0], "part")[1]
    assert part == [row for row in rows if row["id"] in ("q2", "q3")]


def test_it_gives_what_an_evaluation_during_training_gives(
    world: Worlds, tiny_model: Models, tmp_path: Path, questions: Path
) -> None:
    """A run's checkpoint is exported, scored by two ranks, and the copy is gone afterwards."""
    config = jobs.settings(
        tiny_model("qwen2-tied"),
        prompt_data=str(questions),
        eval_prompt_data=(f"quiz={questions}",),
        run_dir=str(tmp_path / "run"),
        verifier="length_class",
        train_iters=1,
        rollout_batch_size=4,
        n_samples_per_prompt=2,
        rollout_max_response_len=12,
        critic_warmup_iters=0,
        lr=1e-2,
        n_samples_per_eval_prompt=3,
        seed=5,
        export_hf=False,
    )
    world(1).run(eval_jobs.run_training, config)
    before, after = (
        EvalResult.load(tmp_path / "run" / "eval" / "quiz" / f"step_{step:06d}.json")
        for step in (0, 1)
    )
    assert before.num_correct != after.num_correct
    output, data = tmp_path / "scores", (f"quiz={questions}",)
    assert world(2).run(eval_jobs.run_eval, tmp_path / "run", data, output) == ["", ""]
    results, _ = stored(output)
    assert results["step"] == 1
    assert tuple(results["sets"]["quiz"]["result"]["num_correct"]) == after.num_correct
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quiz.jsonl", "run", "scores"]


def broken_copy(model: Path, folder: Path, damage: str) -> Path:
    shutil.copytree(model, folder)
    weights = folder / "model.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:5000])
    elif damage == "nan":
        tensors = load_file(weights)
        tensors["model.norm.weight"][0] = math.nan
        save_file(tensors, weights, {"format": "pt"})
    elif damage == "no tokenizer":
        for path in folder.glob("tokenizer*"):
            path.unlink()
    elif damage == "no template":
        (folder / "chat_template.jinja").unlink()
    elif damage == "no checkpoint":
        (folder / "config.json").unlink()
        (folder / "config.yaml").touch()
    return folder


@pytest.mark.parametrize(
    ("damage", "flags", "message"),
    [
        ("cut", {}, "--model {model}: SafetensorError: "),
        ("nan", {}, "--model {model}: model.norm.weight in model.safetensors holds NaN or"),
        ("", {"rollout_engine": "vllm-server"}, "--rollout-engine vllm-server: its servers get"),
        ("no tokenizer", {}, "--model {model} has no tokenizer"),
        ("no template", {}, "no chat template"),
        ("no checkpoint", {}, "--model {model} is a run without a complete checkpoint"),
        (
            "",
            {"max_prompt_len": 12},
            "quiz: 2 of 7 prompts are longer than --max-prompt-len 12; raise it to 17",
        ),
        ("", {"max_response_len": 250}, "the model's 256 tokens leave 239; use at most that"),
    ],
)
def test_refusals_are_the_same_on_all_ranks_and_leave_nothing(
    world: Worlds,
    tiny_model: Models,
    tmp_path: Path,
    questions: Path,
    damage: str,
    flags: dict[str, Any],
    message: str,
) -> None:
    first, second, *rest = questions.read_text().splitlines(keepends=True)
    short = "".join(rest).replace("What is ", "")  # 9 tokens, and the first two questions 17
    questions.write_text(first + second + short)
    model = broken_copy(tiny_model("qwen2-tied"), tmp_path / "model", damage)
    before = sorted(tmp_path.rglob("*"))
    data, output = (str(questions),), tmp_path / "out"
    refusals = world(2).run(eval_jobs.run_eval, model, data, output, **flags)
    assert message.format(model=model) in refusals[0]
    assert refusals[0] == refusals[1]
    assert sorted(tmp_path.rglob("*")) == before


def _megacurl(*argv: str) -> subprocess.CompletedProcess[str]:
    hidden = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    return subprocess.run(
        [sys.executable, "-m", "megacurl", *argv],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key not in hidden},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_line(tiny_model: Models, tmp_path: Path, questions: Path) -> None:
    output = tmp_path / "scores"
    argv = ["eval", "--model", str(tiny_model("llama-tied")), "--data", f"amc23={questions}"]
    argv += ["--output", str(output), "--n-samples", "2", "--max-response-len", "8"]
    done = _megacurl(*argv, "--preset-sampling", "r1", "--bf16")
    assert done.returncode == 0, done.stderr
    assert "temperature 0.6, top-p 0.95, at most 8 tokens, seed 1234" in done.stdout
    assert "amc23: 7 questions x 2 responses" in done.stdout
    assert "22 of its 40 questions are also in DAPO-Math-17k" in done.stdout
    assert "amc23: 14/14 responses in " in done.stderr
    results, rows = stored(output, "amc23")
    assert results["settings"]["temperature"] == 0.6 and results["settings"]["bf16"] is True
    assert [row["correct"] for row in rows].count(True) == round(
        results["sets"]["amc23"]["scores"]["avg@2"]["value"] * 14
    )
    again = _megacurl(*argv)
    assert again.returncode == 2
    assert again.stderr == (
        f"megacurl: --output {output} already holds something; choose another folder\n"
    )


def test_an_error_after_start_up_exits_with_2(
    tiny_model: Models, tmp_path: Path, questions: Path
) -> None:
    model = broken_copy(tiny_model("qwen2-tied"), tmp_path / "model", "cut")
    output = tmp_path / "scores"
    done = _megacurl(
        *("eval", "--model", str(model), "--data", str(questions), "--output", str(output)),
        *("--n-samples", "1", "--max-response-len", "8"),
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"megacurl: --model {model}: SafetensorError: ")
    assert not output.exists()


def test_reading_inputs_keeps_file_order(questions: Path, tiny_model: Models) -> None:
    arguments = EvalArguments(str(tiny_model("qwen2-tied")), (str(questions),), "absent")
    (one,) = read_inputs(arguments)
    assert [prompt.id for prompt in one.prompts] == [f"q{i}" for i in range(7)]


@NEEDS_VLLM
def test_vllm_gives_the_same_scores(world: Worlds, questions: Path, tmp_path: Path) -> None:
    model = make_model(tmp_path / "model", "llama-untied", head_dim=32)
    found = {}
    for engine in ("transformers", "vllm"):
        output, data = tmp_path / engine, (f"quiz={questions}",)
        refused = world(2).run(
            eval_jobs.run_eval, model, data, output, rollout_engine=engine, max_batch_size=16
        )
        assert refused == ["", ""]
        found[engine] = [(row["id"], row["text"], row["correct"]) for row in stored(output)[1]]
    assert found["vllm"] == found["transformers"]


def test_an_engine_that_is_not_there(
    world: Worlds, tiny_model: Models, questions: Path, tmp_path: Path
) -> None:
    (refused,) = world(1).run(
        eval_jobs.run_eval,
        tiny_model("llama-untied"),
        (f"quiz={questions}",),
        tmp_path / "out",
        rollout_engine="transformer",
    )
    assert "--rollout-engine transformer: unknown rollout engine" in refused
    assert "did you mean" in refused
    assert not (tmp_path / "out").exists()
