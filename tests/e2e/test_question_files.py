# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which rows of its question files a run trains and evaluates on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from megacurl.evaluation.result import EvalResult
from tests import jobs
from tests.e2e.bad_inputs import Place
from tests.e2e.test_resume import config_of, questions
from tests.isolated import run_command
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


def test_questions_of_the_evaluation_are_left_out(
    tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    place = Place(tmp_path / "place")
    place.root.mkdir()
    place.model.symlink_to(tiny_model("qwen2-tied"))
    questions(place.root)
    quiz = place.root / "quiz.jsonl"
    rows = [{"id": f"e{i}", "prompt": f"$ {i}+{i} $", "answer": str(2 * i)} for i in (1, 4, 9)]
    quiz.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--eval-prompt-data", str(quiz), "--decontaminate", "--skip-eval-before-train")
    done = run_command(place.argv(*flags, "--n-samples-per-eval-prompt", "1"), tmp_path / "out")
    assert (done.code, done.errors) == (0, "")
    told = f"5 questions from {place.data}, left out as questions of the evaluation sets: 2 of quiz"
    assert told in " ".join(done.output.split())
    (state,) = place.run.glob("checkpoints/step_*/run.json")
    assert json.loads(state.read_text())["cursor"]["size"] == 5


def test_nothing_left_to_train_on(tiny_model: Callable[[str], Path], tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.root.mkdir()
    place.model.symlink_to(tiny_model("qwen2-tied"))
    questions(place.root)
    before = place.snapshot()
    flags = ("--eval-prompt-data", f"quiz={place.data}", "--decontaminate")
    done = run_command(place.argv(*flags), tmp_path / "out")
    assert done.code == 2
    assert "--decontaminate leaves none of the 7 training questions" in done.errors
    assert place.snapshot() == before
