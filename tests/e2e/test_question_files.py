# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which rows of its question files a run trains and evaluates on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from megacurl.evaluation.result import EvalResult
from tests import jobs
from tests.e2e.test_resume import config_of, questions
from tests.world import World


def test_slices(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    file = questions(tmp_path)
    config = config_of(
        tiny_model("qwen2-tied"),
        Path(f"{file}@[:4]"),
        tmp_path / "run",
        train_iters=1,
        critic_warmup_iters=0,
        export_hf=False,
        eval_prompt_data=(f"{file}@[2:4]", f"rest={file}@[4:]"),
        n_samples_per_eval_prompt=2,
        skip_eval_before_train=True,
    )
    world(1).run(jobs.run_training, config)
    found = {
        name: EvalResult.load(tmp_path / "run" / "eval" / name / "step_000001.json").question_ids
        for name in ("questions", "rest")
    }
    assert found == {"questions": ("q2", "q3"), "rest": ("q4", "q5", "q6")}
