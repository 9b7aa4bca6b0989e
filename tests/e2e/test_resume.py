# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A resumed run gives the numbers of the run that was never interrupted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from megacurl.config.schema import Config
from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.world import World


def questions(folder: Path) -> Path:
    path = folder / "questions.jsonl"
    rows = [{"id": f"q{i}", "prompt": f"{i} + {i}?", "answer": str(2 * i)} for i in range(7)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config_of(model: Path, data: Path, run_dir: Path, preset: str = "cvpo", **flat: Any) -> Config:
    return jobs.settings(
        model,
        preset,
        **{
            "prompt_data": str(data),
            "run_dir": str(run_dir),
            "verifier": "coin_flip",
            "train_iters": 4,
            "rollout_batch_size": 4,
            "n_samples_per_prompt": 4,
            "global_batch_size": 8,
            "rollout_max_response_len": 6,
            "rollout_max_prompt_len": 64,
            "lr": 1e-3,
            "critic_lr": 1e-3,
            "lr_warmup_iters": 3,
            "critic_warmup_iters": 1,
            "save_interval": 2,
            "max_tokens_per_micro_batch": 128,
            **flat,
        },
    )


def without_times(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    timed = ("time/", "perf/", "compute/")
    return [{k: v for k, v in row.items() if not k.startswith(timed)} for row in rows]


TP2PP2 = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2}
INTERLEAVED = {"pipeline_model_parallel_size": 2, "num_layers_per_virtual_pipeline_stage": 1}


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        ({}, 1),
        ({"offload": "all"}, 2),
        (TP2PP2, 4),
        (INTERLEAVED, 2),
        ({"preset": "gspo"}, 2),
        ({"preset": "grpo", "tensor_model_parallel_size": 2, "offload": "all"}, 2),
    ],
    ids=str,
)
def test_resume_is_exact(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    tmp_path: Path,
    layout: dict[str, Any],
    size: int,
) -> None:
    data, model = questions(tmp_path), tiny_model("qwen2-tied")
    whole = config_of(model, data, tmp_path / "whole", **layout)
    world(size).run(jobs.run_training, whole)
    # The second run starts over from the first one's checkpoint after step 2.
    again = config_of(
        model,
        data,
        tmp_path / "again",
        load=str(tmp_path / "whole" / "checkpoints" / "step_000002"),
        **layout,
    )
    world(size).run(jobs.run_training, again)

    expected = without_times(read_rows(tmp_path / "whole" / "metrics.jsonl"))
    found = without_times(read_rows(tmp_path / "again" / "metrics.jsonl"))
    assert [row["step"] for row in expected] == [0, 1, 2, 3, 4]
    assert found == expected[3:]
    assert expected[4]["actor/grad_norm"] > 0
    check_what_adds_up(tmp_path)
    before = load_file(tmp_path / "whole" / "hf" / "model.safetensors")
    after = load_file(tmp_path / "again" / "hf" / "model.safetensors")
    assert all(before[name].equal(after[name]) for name in before)


def check_what_adds_up(folder: Path) -> None:
    """Device-seconds go on from those of the checkpoint, and so does the drift."""

    def saved(run: str, step: int) -> Any:
        path = folder / run / "checkpoints" / f"step_{step:06d}" / "run.json"
        return json.loads(path.read_text())

    whole, again = (read_rows(folder / run / "metrics.jsonl") for run in ("whole", "again"))
    state = saved("whole", 2)["compute"]
    assert whole[1]["compute/total"] < state["total"] < whole[2]["compute/total"]
    ranks = (whole[2]["compute/total"] - whole[1]["compute/total"]) / whole[2]["time/step"]
    assert again[0]["compute/total"] == pytest.approx(
        state["total"] + ranks * again[0]["time/step"]
    )
    assert again[-1]["compute/train"] > state["train"] > 0
    assert saved("again", 4)["drift"] == saved("whole", 4)["drift"]
    has_critic = "critic/loss" in whole[1]
    # The critic warms up for the first of the four steps.
    assert saved("whole", 4)["drift"]["count"] == 3 * has_critic


@pytest.mark.parametrize(
    ("before", "after"), [(TP2PP2, {}), (INTERLEAVED, {}), ({}, INTERLEAVED)], ids=str
)
def test_resume_in_another_layout_and_in_place(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    tmp_path: Path,
    before: dict[str, int],
    after: dict[str, int],
) -> None:
    """A run goes on in another layout and the same folder, from the newest checkpoint."""
    data, model = questions(tmp_path), tiny_model("llama-untied")
    first = config_of(
        model,
        data,
        tmp_path / "run",
        train_iters=2,
        **before,
    )
    world(_ranks(before)).run(jobs.run_training, first)
    longer = config_of(model, data, tmp_path / "run", load=str(tmp_path / "run"), **after)
    world(_ranks(after)).run(jobs.run_training, longer)
    reference = config_of(model, data, tmp_path / "reference")
    world(1).run(jobs.run_training, reference)

    found = read_rows(tmp_path / "run" / "metrics.jsonl")
    expected = read_rows(tmp_path / "reference" / "metrics.jsonl")
    assert [row["step"] for row in found] == [0, 1, 2, 3, 4]
    for name in ("actor/grad_norm", "critic/loss", "rollout/accuracy", "sync/version"):
        assert found[4][name] == pytest.approx(expected[4][name], rel=1e-3), name


def _ranks(layout: dict[str, int]) -> int:
    tp = layout.get("tensor_model_parallel_size", 1)
    return tp * layout.get("pipeline_model_parallel_size", 1)


def test_flags_win_over_the_checkpoint(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """A changed learning rate is used; a run that has nothing left to do says so."""
    data, model = questions(tmp_path), tiny_model("llama-untied")
    world(1).run(jobs.run_training, config_of(model, data, tmp_path / "run", train_iters=2))
    load = {"load": str(tmp_path / "run")}
    again = config_of(model, data, tmp_path / "run", lr=5e-4, lr_warmup_iters=0, **load)
    world(1).run(jobs.run_training, again)
    assert read_rows(tmp_path / "run" / "metrics.jsonl")[-1]["actor/lr"] == pytest.approx(5e-4)
    with pytest.raises(AssertionError, match="--train-iters 4 is already reached"):
        world(1).run(jobs.run_training, again)


def test_an_abandoned_future_is_dropped(tmp_path: Path) -> None:
    """After going back to step 2, ``--load`` must not find the old step 4."""
    from megacurl.megatron.checkpoint import _drop_others, complete_checkpoints

    for step in (1, 2, 3, 4, 10):
        folder = tmp_path / f"step_{step:06d}"
        folder.mkdir()
        (folder / "run.json").write_text("{}")
    _drop_others(tmp_path, 3, keep=2)
    assert [p.name for p in complete_checkpoints(tmp_path)] == ["step_000002", "step_000003"]


def test_export_command(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    """``megacurl export`` of a TP2 x PP2 run writes what the run itself exported."""
    config = config_of(
        tiny_model("qwen2-tied"),
        questions(tmp_path),
        tmp_path / "run",
        train_iters=2,
        tensor_model_parallel_size=2,
        pipeline_model_parallel_size=2,
    )
    world(4).run(jobs.run_training, config)
    command = [sys.executable, "-m", "megacurl", "export", "--load", str(tmp_path / "run")]
    command += ["--output", str(tmp_path / "out")]
    subprocess.run(command, check=True)
    expected = load_file(tmp_path / "run" / "hf" / "model.safetensors")
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert expected.keys() == found.keys()
    assert all(expected[name].equal(found[name]) for name in expected)
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "already holds something" in refused.stderr


def test_a_new_run_does_not_overwrite_an_old_one(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    config = config_of(
        tiny_model("llama-untied"), questions(tmp_path), tmp_path / "run", train_iters=1
    )
    world(1).run(jobs.run_training, config)
    with pytest.raises(AssertionError, match="FileExistsError"):
        world(1).run(jobs.run_training, config)


def test_load_names_what_is_missing(tmp_path: Path) -> None:
    from megacurl.megatron.checkpoint import find_checkpoint

    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        find_checkpoint(tmp_path)
