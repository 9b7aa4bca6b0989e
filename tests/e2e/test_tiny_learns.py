# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""CVPO makes the tiny base model better at questions it has never seen, and chance does not.

The settings are those of examples/run_cvpo_tiny.sh with fewer steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from megacurl.config.schema import Config
from megacurl.evaluation.result import EvalResult
from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.world import World


def config_of(base: Path, run_dir: Path, **flat: Any) -> Config:
    return jobs.settings(
        base,
        **{
            "prompt_data": str(base / "train.jsonl"),
            "eval_prompt_data": (f"heldout={base / 'test.jsonl'}",),
            "run_dir": str(run_dir),
            "train_iters": 22,
            "rollout_batch_size": 16,
            "n_samples_per_prompt": 8,
            "rollout_max_prompt_len": 128,
            "rollout_max_response_len": 48,
            "max_tokens_per_micro_batch": 8192,
            "lr": 2e-4,
            "critic_lr": 1e-3,
            "weight_decay": 0.0,
            "critic_warmup_iters": 2,
            "lam_critic": 1.0,
            "n_samples_per_eval_prompt": 8,
            "eval_top_p": 1.0,
            **flat,
        },
    )


def held_out(run_dir: Path, step: int) -> EvalResult:
    return EvalResult.load(run_dir / "eval" / "heldout" / f"step_{step:06d}.json")


# A minute each: one in CI, more on demand (MEGACURL_TEST_SEEDS="1 2 3").
SEEDS = [int(seed) for seed in os.environ.get("MEGACURL_TEST_SEEDS", "1").split()]


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_accuracy_rises(
    world: Callable[[int], World], tiny_base: Path, tmp_path: Path, seed: int
) -> None:
    config = config_of(tiny_base, tmp_path / "run", seed=seed)
    world(1).run(jobs.run_training, config)
    before, after = held_out(tmp_path / "run", 0), held_out(tmp_path / "run", 22)
    assert after.accuracy - before.accuracy >= 0.25
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert rows[-1]["eval/heldout/avg@8"] == after.accuracy
    for row in rows[3:]:
        assert row["actor/ratio_dev_first"] < 1e-4  # fp32: nothing moved before the first update
        assert row["sync/logprob_gap"] < 1e-4  # the engine is the trainer's policy
    if seed == 1:
        check_export(world, config, tmp_path / "run", after)


def check_export(
    world: Callable[[int], World], config: Config, run_dir: Path, after: EvalResult
) -> None:
    """transformers loads the export, and it scores what the trainer's engine scored."""
    (counts,) = world(1).run(jobs.score_export, config, run_dir / "hf")[0]
    assert counts == after.num_correct
    model = AutoModelForCausalLM.from_pretrained(run_dir / "hf", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(run_dir / "hf")
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is 3 + 4 + 5?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    output = model.generate(**prompt, max_new_tokens=48, do_sample=False)
    text = tokenizer.decode(output[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert "Answer:" in text
    assert {"config.yaml", "metrics.jsonl", "tensorboard", "checkpoints", "hf"} <= {
        path.name for path in run_dir.iterdir()
    }


def test_coin_flips_teach_nothing(
    world: Callable[[int], World], tiny_base: Path, tmp_path: Path
) -> None:
    """Same run, rewards by chance; the evaluation is judged by the real verifier afterwards."""
    config = config_of(tiny_base, tmp_path / "run", verifier="coin_flip")
    world(1).run(jobs.run_training, config)
    judged = config_of(tiny_base, tmp_path / "unused")
    (before,) = world(1).run(jobs.score_export, judged, tiny_base)[0]
    (after,) = world(1).run(jobs.score_export, judged, tmp_path / "run" / "hf")[0]
    assert (sum(after) - sum(before)) / (8 * len(before)) < 0.05
