# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The tiny base model: its task, its folder, and that a few steps of its training learn."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import make_tiny_base
import tiny_task
import tiny_trainer
from tiny_trainer import PROMPT, TrainingPlan

FLAGS = ("--steps", "3", "--eval-samples", "1", "--threads", "1")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished folder of three steps."""
    output = tmp_path_factory.mktemp("tiny") / "base"
    assert make_tiny_base.main(["--output", str(output), *FLAGS]) == 0
    return output


@pytest.fixture(scope="module")
def tokenizer(base: Path) -> Any:
    return AutoTokenizer.from_pretrained(base)


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_folder_loads_as_the_model_of_its_config(base: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(base)
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert model.num_parameters() == 854_144
    assert model.config.tie_word_embeddings
    wanted = json.loads((make_tiny_base.CONFIG / "config.json").read_text("utf-8"))
    for name in ("hidden_size", "num_hidden_layers", "num_key_value_heads", "eos_token_id"):
        assert getattr(model.config, name) == wanted[name]


def test_chat_template_writes_the_prompt_of_the_training(tokenizer: Any) -> None:
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is 1 + 2?"}], tokenize=False, add_generation_prompt=True
    )
    assert text == PROMPT.format("What is 1 + 2?")


def test_loaded_tokenizer_equals_the_trained_one(base: Path, tokenizer: Any) -> None:
    rng = Random(0)
    tiny_task.draw_splits(rng)
    trained = make_tiny_base.build_tokenizer(rng)
    for row in rows(base / "test.jsonl"):
        text = PROMPT.format(row["prompt"]) + f"Answer: {row['answer']}<|im_end|>"
        assert tokenizer(text)["input_ids"] == trained(text)["input_ids"]


@pytest.mark.parametrize("text", ["12 + 345 = 357", "It's  \\frac{1}{2}\n\n", "你好 \x0c ¿é?"])
def test_any_text_survives_and_digits_stand_alone(tokenizer: Any, text: str) -> None:
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    pieces = [tokenizer.decode([index]) for index in ids]
    assert all(len(piece) == 1 for piece in pieces if any(sign.isdigit() for sign in piece))


def test_questions_are_distinct_and_answered_correctly(base: Path) -> None:
    train, test = rows(base / "train.jsonl"), rows(base / "test.jsonl")
    assert (len(train), len(test)) == (tiny_task.TRAIN_COUNT, sum(tiny_task.TEST_COUNTS.values()))
    assert len({row["prompt"] for row in train + test}) == len(train) + len(test)
    assert len({row["id"] for row in train + test}) == len(train) + len(test)
    for row in train + test:
        numbers = [int(word.strip("?,")) for word in row["prompt"].split() if word[0].isdigit()]
        assert str(sum(numbers)) == row["answer"]


def test_no_training_batch_holds_a_held_out_question(tokenizer: Any) -> None:
    rng = Random(0)
    held_out = tiny_task.draw_splits(rng).held_out_texts
    drawn = [tiny_task.draw_question(rng).text for _ in range(3000)]
    assert held_out.intersection(drawn), "without the filter they would occur"
    plan = TrainingPlan(steps=100)
    for batch in tiny_trainer.draw_examples(plan, tokenizer, held_out, Random(1)):
        assert len(batch) == plan.batch_size
        for ids, prompt in batch:
            text = tokenizer.decode(ids[:prompt])
            assert text.removeprefix("<|im_start|>user\n").split("<|im_end|>")[0] not in held_out


def test_first_part_of_the_training_is_step_by_step_alone(tokenizer: Any) -> None:
    plan = TrainingPlan(steps=20, pure=0.5)
    seen: list[set[str]] = []
    for batch in tiny_trainer.draw_examples(plan, tokenizer, frozenset(), Random(0)):
        responses = [tokenizer.decode(ids[prompt:]) for ids, prompt in batch]
        assert all(response.endswith("<|im_end|>") for response in responses)
        seen.append({tiny_task.strategy_of(response) for response in responses})
    assert all(strategies == {"stepwise"} for strategies in seen[:10])
    assert set.union(*seen[10:]) == set(tiny_task.STRATEGIES)


@pytest.mark.parametrize(
    ("strategy", "low", "high"), [("stepwise", 1, 1), ("guess", 0.05, 0.3), ("sloppy", 0.2, 0.6)]
)
def test_only_the_step_by_step_strategy_is_reliable(strategy: str, low: float, high: float) -> None:
    rng = Random(0)
    mixture = [float(name == strategy) for name in tiny_task.STRATEGIES]
    right = 0
    for _ in range(2000):
        question = tiny_task.draw_question(rng)
        response = tiny_task.draw_response(rng, question, mixture)
        assert tiny_task.strategy_of(response) == strategy
        right += tiny_task.is_correct(response, question.answer)
    assert low <= right / 2000 <= high


def test_packing_by_length_leaves_loss_and_gradients_as_they_are(
    base: Path, tokenizer: Any
) -> None:
    model = AutoModelForCausalLM.from_pretrained(base)
    plan = TrainingPlan(steps=1, batch_size=6)
    (batch,) = tiny_trainer.draw_examples(plan, tokenizer, frozenset(), Random(0))
    loss = tiny_trainer._accumulate_gradients(model, batch)
    ours = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    tokens = sum(len(ids) - prompt for ids, prompt in batch)
    total = torch.zeros(())
    for ids, prompt in batch:
        inputs = torch.tensor([ids])
        labels = inputs.clone()
        labels[:, :prompt] = -100
        total = total + model(input_ids=inputs, labels=labels).loss * (len(ids) - prompt) / tokens
    total.backward()
    assert loss == pytest.approx(total.item(), rel=1e-5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_training_learns(tokenizer: Any) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        torch.manual_seed(0)
        model = make_tiny_base.build_model(tokenizer)
        plan = TrainingPlan(steps=25, batch_size=16)
        batches = list(tiny_trainer.draw_examples(plan, tokenizer, frozenset(), Random(0)))
        before = tiny_trainer._accumulate_gradients(model, batches[-1])
        tiny_trainer.train(model, tokenizer, plan, frozenset(), Random(0))
        after = tiny_trainer._accumulate_gradients(model, batches[-1])
    finally:
        torch.set_num_threads(threads)
    assert after < before - 2.0


def test_evaluation_counts_unfinished_and_unanswered_as_wrong() -> None:
    question = tiny_task.Question("add2", "What is 1 + 2?", ("1 + 2 = 3",), 3)
    found = tiny_trainer._summarise(
        [
            (question, "1 + 2 = 3\nAnswer: 3", 12, True),
            (question, "Answer: 3", 48, False),
            (question, "Quick: 1 + 2 = 3", 9, True),
            (question, "Answer: 3\nAnswer: 4", 9, True),
        ]
    )
    assert found.accuracy == 0.25
    assert found.truncated == 0.25
    assert found.mean_tokens == 19.5
    assert found.strategy_share == {"stepwise": 0.25, "guess": 0.5, "sloppy": 0.25}
    assert found.strategy_accuracy == {"stepwise": 1.0, "guess": 0.0, "sloppy": 0.0}
    assert found.level_accuracy == {"add2": 0.25}


def test_report_tells_what_the_model_does(base: Path) -> None:
    report = json.loads((base / "report.json").read_text("utf-8"))
    assert report["parameters"] == 854_144
    assert 0 < report["loss"] < 10
    assert report["arguments"] == {"seed": 0, "steps": 3, "eval_samples": 1, "threads": 1}
    assert sum(report["evaluation"]["strategy_share"].values()) == pytest.approx(1, abs=0.01)


def test_same_arguments_give_the_same_weights(base: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert make_tiny_base.main(["--output", str(again), *FLAGS]) == 0
    for name in ("model.safetensors", "tokenizer.json", "train.jsonl", "test.jsonl"):
        assert (again / name).read_bytes() == (base / name).read_bytes()


def test_finished_folder_is_left_alone(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = os.stat(base / "model.safetensors").st_mtime_ns
    assert make_tiny_base.main(["--output", str(base), *FLAGS]) == 0
    assert "already there" in capsys.readouterr().out
    assert make_tiny_base.main(["--output", str(base), *FLAGS, "--seed", "1"]) == 1
    assert "remove it or choose another folder" in capsys.readouterr().err
    assert os.stat(base / "model.safetensors").st_mtime_ns == before


def test_foreign_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep", "utf-8")
    assert make_tiny_base.main(["--output", str(tmp_path), *FLAGS]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(make_tiny_base, "train", fail)
    with pytest.raises(KeyboardInterrupt):
        make_tiny_base.main(["--output", str(tmp_path / "base"), *FLAGS])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["--steps", "--eval-samples", "--threads"])
def test_negative_numbers_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    with pytest.raises(SystemExit):
        make_tiny_base.main(["--output", str(tmp_path / "base"), flag, "-1"])
    assert f"{flag} must be at least" in capsys.readouterr().err
