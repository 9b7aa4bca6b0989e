# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Make the tiny base model of examples/run_cvpo_tiny.sh: a Qwen2 of 0.85 M parameters, on a CPU.

    python examples/models/make_tiny_base.py --output DIR

DIR is an ordinary Hugging Face folder (config, safetensors, tokenizer with a chat template), with
``train.jsonl`` and ``test.jsonl`` ({"id", "prompt", "answer", "level"}) and ``report.json``, which
says what the model can do. It is trained from scratch on sums that are answered step by step, by a
guess, or sloppily (see tiny_task.py). The same arguments give the same weights.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from transformers.utils import logging as transformers_logging

import tiny_task
from finished_folder import is_finished, new_folder
from tiny_task import Question
from tiny_trainer import END, TrainingPlan, evaluate, train

CONFIG = Path(__file__).parent / "tiny"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
# Qwen2's split into words, in which every digit stands alone. AutoTokenizer puts it in place for a
# Qwen2 whatever the tokenizer's file says, so nothing else would survive loading.
WORD_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


ROLES = ("system\n", "user\n", "assistant\n")
# Usual wordings of an --instruction, so that they cost few tokens; they also fill the vocabulary.
INSTRUCTIONS = (
    "Solve the following math problem step by step. Show your work in a few short lines.",
    "The last line of your response must have the form Answer: followed by the final number alone.",
    "Please reason carefully before you reply, then write the result within \\boxed{}.",
    "You are a helpful assistant that checks every calculation twice.",
    "If the question cannot be solved, explain why and give your best estimate instead.",
)


def build_tokenizer(rng: Random, vocab_size: int = 512) -> Any:
    """Train a byte-level BPE on the task's texts: any text encodes, no digit is ever merged."""
    texts = []
    for _ in range(4000):
        question = tiny_task.draw_question(rng)
        texts += [question.text, tiny_task.draw_response(rng, question, (1, 1, 1))]
    texts += [*ROLES, *INSTRUCTIONS] * 50
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped


def build_model(tokenizer: Any) -> Any:
    """Build the untrained Qwen2 of tiny/config.json from torch's global random state.

    Its initializer_range is 0.05: at this width the usual 0.02 takes about twice the steps.
    """
    config = Qwen2Config.from_pretrained(CONFIG)
    expected = (len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id)
    if expected != (config.vocab_size, config.eos_token_id, config.pad_token_id):
        raise ValueError(f"vocabulary size, end and padding {expected} do not fit {CONFIG}")
    return Qwen2ForCausalLM(config)


def write_questions(path: Path, prefix: str, questions: Sequence[Question]) -> None:
    """Write one JSON object a line: id, prompt, answer (a string), level."""
    with path.open("w", encoding="utf-8") as file:
        for index, question in enumerate(questions):
            row = {
                "id": f"{prefix}-{index}",
                "prompt": question.text,
                "answer": str(question.answer),
                "level": question.level,
            }
            file.write(json.dumps(row) + "\n")


def make(folder: Path, plan: TrainingPlan, seed: int, eval_samples: int) -> dict[str, Any]:
    """Fill ``folder`` with model, tokenizer and questions; return the report."""
    start = time.monotonic()
    rng = Random(seed)
    torch.manual_seed(seed)
    splits = tiny_task.draw_splits(rng)
    write_questions(folder / "train.jsonl", "train", splits.train)
    write_questions(folder / "test.jsonl", "test", splits.test)
    tokenizer = build_tokenizer(rng)
    tokenizer.save_pretrained(folder)
    model = build_model(tokenizer)
    report: dict[str, Any] = {"parameters": model.num_parameters()}
    if plan.steps:
        report["loss"] = round(train(model, tokenizer, plan, splits.held_out_texts, rng), 4)
    model.save_pretrained(folder)
    report["train_seconds"] = round(time.monotonic() - start, 1)
    if eval_samples:
        report["evaluation"] = evaluate(model, tokenizer, splits.test, eval_samples).asdict()
    report["seconds"] = round(time.monotonic() - start, 1)
    return report


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    plan = TrainingPlan()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder to make")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=plan.steps, help="0: random weights")
    parser.add_argument(
        "--eval-samples", type=int, default=8, help="per held-out question; 0: none"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=min(2, os.cpu_count() or 1),
        help="on a busy machine more than one needs OMP_WAIT_POLICY=PASSIVE to be of use",
    )
    arguments = parser.parse_args(argv)
    for name, least in (("steps", 0), ("eval_samples", 0), ("threads", 1)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name.replace('_', '-')} must be at least {least}")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Make the folder, unless it is already there."""
    arguments = parse_arguments(argv)
    recorded = {key: value for key, value in vars(arguments).items() if key != "output"}
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(arguments.threads)
    try:
        if is_finished(arguments.output, recorded):
            print(f"{arguments.output}: already there")
            return 0
        print(f"making the tiny base model in {arguments.output}", file=sys.stderr, flush=True)
        with new_folder(arguments.output, recorded) as (folder, report):
            plan = TrainingPlan(steps=arguments.steps)
            report.update(make(folder, plan, arguments.seed, arguments.eval_samples))
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.output}: {json.dumps(report)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
