# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Supervised training and sampled evaluation of the tiny base model, on one or two CPU cores."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import torch
from torch.nn import functional

import tiny_task
from tiny_task import Question

PROMPT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"
MAX_RESPONSE_TOKENS = 48


@dataclass(frozen=True)
class TrainingPlan:
    """Length and schedule of the supervised training."""

    steps: int = 700
    batch_size: int = 32
    lr: float = 3e-3
    pure: float = 0.65
    """First part of the steps, which imitates the step-by-step strategy alone: the facts."""
    mixture: tuple[float, float, float] = (0.4, 0.4, 0.2)
    """Weights of the strategies in the remaining steps."""

    def lr_at(self, step: int) -> float:
        """Learning rate: linear warm-up, flat to 30% of the steps, then half a cosine to 5%."""
        progress = step / self.steps
        decay = 0.5 * (1 + math.cos(math.pi * max(0.0, progress - 0.3) / 0.7))
        return self.lr * min(1.0, (step + 1) / 50) * (0.05 + 0.95 * decay)

    def mixture_at(self, step: int) -> tuple[float, float, float]:
        """Weights of the strategies at a step."""
        return (1.0, 0.0, 0.0) if step < self.pure * self.steps else self.mixture


Example = tuple[list[int], int]
"""Token ids of prompt and response, and the number of prompt tokens."""


def draw_examples(
    plan: TrainingPlan, tokenizer: Any, held_out: frozenset[str], rng: Random
) -> Iterator[list[Example]]:
    """Yield one batch a step; no batch holds a held-out question."""
    for step in range(plan.steps):
        prompts: list[str] = []
        responses: list[str] = []
        while len(prompts) < plan.batch_size:
            question = tiny_task.draw_question(rng)
            if question.text not in held_out:
                response = tiny_task.draw_response(rng, question, plan.mixture_at(step))
                prompts.append(PROMPT.format(question.text))
                responses.append(response + END)
        encode = tokenizer(prompts + responses, add_special_tokens=False)["input_ids"]
        pairs = zip(encode[: len(prompts)], encode[len(prompts) :], strict=True)
        yield [(prompt + response, len(prompt)) for prompt, response in pairs]


def train(
    model: Any, tokenizer: Any, plan: TrainingPlan, held_out: frozenset[str], rng: Random
) -> float:
    """Train ``model`` in place; return the loss (nats a response token) of the last 50 steps."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plan.lr, betas=(0.9, 0.98), weight_decay=0.01
    )
    model.train()
    losses: list[float] = []
    start = time.monotonic()
    for step, batch in enumerate(draw_examples(plan, tokenizer, held_out, rng)):
        for group in optimizer.param_groups:
            group["lr"] = plan.lr_at(step)
        optimizer.zero_grad(set_to_none=True)
        losses.append(_accumulate_gradients(model, batch))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 50 == 0 or step + 1 == plan.steps:
            recent = losses[-50:]
            print(
                f"  step {step + 1}/{plan.steps}  loss {sum(recent) / len(recent):.3f}"
                f"  {time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return sum(losses[-50:]) / len(losses[-50:])


def _accumulate_gradients(model: Any, batch: list[Example], parts: int = 2) -> float:
    """Back-propagate the batch's mean token loss; return it.

    Sorted by length and cut in parts the batch needs hardly any padding, and the logits are made
    for response tokens only: together a quarter of the work.
    """
    tokens = sum(len(ids) - prompt for ids, prompt in batch)
    batch = sorted(batch, key=lambda example: len(example[0]))
    size = -(-len(batch) // parts)
    total = 0.0
    for begin in range(0, len(batch), size):
        part = batch[begin : begin + size]
        width = max(len(ids) for ids, _ in part)
        # Padding is on the right, where causal attention does not see it, so no mask is needed.
        inputs = torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in part])
        position = torch.arange(width - 1)
        first = torch.tensor([prompt - 1 for _, prompt in part])[:, None]
        last = torch.tensor([len(ids) - 1 for ids, _ in part])[:, None]
        predicts = (position >= first) & (position < last)
        hidden = model.model(input_ids=inputs, use_cache=False).last_hidden_state[:, :-1]
        logits = model.lm_head(hidden[predicts])
        loss = functional.cross_entropy(logits, inputs[:, 1:][predicts], reduction="sum") / tokens
        loss.backward()
        total += loss.item()
    return total


@dataclass(frozen=True)
class Evaluation:
    """Sampled behaviour of the model at temperature 1."""

    accuracy: float
    mean_tokens: float
    truncated: float
    strategy_share: dict[str, float]
    strategy_accuracy: dict[str, float]
    level_accuracy: dict[str, float]

    def asdict(self) -> dict[str, Any]:
        """Return plain values, rounded for reading."""
        rounded: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                rounded[name] = {key: round(number, 3) for key, number in value.items()}
            else:
                rounded[name] = round(value, 3)
        return rounded


@torch.inference_mode()
def evaluate(model: Any, tokenizer: Any, questions: Sequence[Question], samples: int) -> Evaluation:
    """Sample ``samples`` responses to every question; uses torch's global random state."""
    model.eval()
    outcomes: list[tuple[Question, str, int, bool]] = []
    for begin in range(0, len(questions), 50):
        asked = [question for question in questions[begin : begin + 50] for _ in range(samples)]
        prompts = [PROMPT.format(question.text) for question in asked]
        inputs = tokenizer(
            prompts,
            return_tensors="pt",
            padding=True,
            padding_side="left",
            add_special_tokens=False,
        )
        output = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=MAX_RESPONSE_TOKENS,
        )
        for question, ids in zip(
            asked, output[:, inputs["input_ids"].shape[1] :].tolist(), strict=True
        ):
            ended = tokenizer.eos_token_id in ids
            ids = ids[: ids.index(tokenizer.eos_token_id)] if ended else ids
            outcomes.append((question, tokenizer.decode(ids), len(ids) + ended, ended))
    return _summarise(outcomes)


def _summarise(outcomes: Sequence[tuple[Question, str, int, bool]]) -> Evaluation:
    counts: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for question, response, _, ended in outcomes:
        right = ended and tiny_task.is_correct(response, question.answer)
        for key in ("all", tiny_task.strategy_of(response), question.level):
            counts[key] += 1
            correct[key] += right
    accuracy = {key: correct[key] / count for key, count in counts.items()}
    total = len(outcomes)
    return Evaluation(
        accuracy=accuracy["all"],
        mean_tokens=sum(length for _, _, length, _ in outcomes) / total,
        truncated=sum(not ended for _, _, _, ended in outcomes) / total,
        strategy_share={key: counts[key] / total for key in tiny_task.STRATEGIES},
        strategy_accuracy={key: accuracy[key] for key in tiny_task.STRATEGIES if key in accuracy},
        level_accuracy={key: accuracy[key] for key in tiny_task.LEVELS if key in accuracy},
    )
