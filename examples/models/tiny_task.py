# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sums of small numbers, answered by a mixture of strategies: the task of the tiny example.

A model imitates three ways of answering, of which only the first is reliable. Reinforcement
learning can therefore raise the accuracy on unseen questions by making the good strategy more
frequent, which takes a few dozen steps; new arithmetic would take a model of this size thousands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

Level = Literal["add2", "sum3", "sum4", "word3"]
Strategy = Literal["stepwise", "guess", "sloppy"]

LEVELS: tuple[Level, ...] = ("add2", "sum3", "sum4", "word3")
LEVEL_WEIGHTS = (1, 3, 3, 3)
STRATEGIES: tuple[Strategy, ...] = ("stepwise", "guess", "sloppy")
TEST_COUNTS: dict[Level, int] = {"add2": 20, "sum3": 60, "sum4": 60, "word3": 60}
TRAIN_COUNT = 2000

_NAMES = ("Ann", "Bo", "Cy", "Dee", "Eli", "Fay")
_THINGS = ("pens", "cups", "eggs", "nuts", "keys", "hats")
_ANSWER = re.compile(r"Answer: (-?\d+)")


@dataclass(frozen=True)
class Question:
    """A question, the chain of facts that answers it, and the answer."""

    level: Level
    text: str
    facts: tuple[str, ...]
    answer: int


def draw_question(rng: Random, level: Level | None = None) -> Question:
    """Draw a question of ``level``, or of a random level in the proportions ``LEVEL_WEIGHTS``."""
    level = level or rng.choices(LEVELS, LEVEL_WEIGHTS)[0]
    count = {"add2": 2, "sum3": 3, "sum4": 4, "word3": 3}[level]
    terms = [rng.randint(1, 9) for _ in range(count)]
    if level == "add2":
        terms[0] = rng.randint(1, 18)
    if level == "word3":
        text = _word_problem(rng.choice(_NAMES), rng.choice(_THINGS), terms)
    else:
        text = f"What is {' + '.join(map(str, terms))}?"
    return Question(level, text, _running_sums(terms), sum(terms))


def draw_response(rng: Random, question: Question, mixture: Sequence[float]) -> str:
    """Draw a response to imitate; ``mixture`` holds the weights of ``STRATEGIES``."""
    strategy = rng.choices(STRATEGIES, mixture)[0]
    if strategy == "stepwise":
        return "\n".join(question.facts) + f"\nAnswer: {question.answer}"
    if strategy == "guess":
        return f"Answer: {_guess(rng, question)}"
    facts, answer = _sloppy_facts(rng, question)
    return "Quick: " + "\n".join(facts) + f"\nAnswer: {answer}"


def strategy_of(response: str) -> Strategy:
    """Tell the strategy from how a response begins."""
    if response.startswith("Answer"):
        return "guess"
    return "sloppy" if response.startswith("Quick") else "stepwise"


def is_correct(response: str, answer: int) -> bool:
    """Whether the last ``Answer: N`` of the response is ``answer``."""
    answers = _ANSWER.findall(response)
    return bool(answers) and int(answers[-1]) == answer


@dataclass(frozen=True)
class Splits:
    """Questions for the reinforcement learning, and held-out ones that nothing is trained on."""

    train: tuple[Question, ...]
    test: tuple[Question, ...]

    @property
    def held_out_texts(self) -> frozenset[str]:
        """Texts that must be in no training data."""
        return frozenset(question.text for question in self.test)


def draw_splits(rng: Random) -> Splits:
    """Draw distinct questions: ``TEST_COUNTS`` of each level, then ``TRAIN_COUNT`` others."""
    seen: set[str] = set()

    def draw_new(level: Level | None) -> Question:
        while (question := draw_question(rng, level)).text in seen:
            pass
        seen.add(question.text)
        return question

    test = [draw_new(level) for level in LEVELS for _ in range(TEST_COUNTS[level])]
    return Splits(train=tuple(draw_new(None) for _ in range(TRAIN_COUNT)), test=tuple(test))


def _word_problem(name: str, thing: str, terms: Sequence[int]) -> str:
    first, second, third = terms
    return (
        f"{name} has {first} {thing}, buys {second} more and finds {third} more. "
        f"How many {thing} does {name} have?"
    )


def _running_sums(terms: Sequence[int]) -> tuple[str, ...]:
    facts, total = [], terms[0]
    for term in terms[1:]:
        facts.append(f"{total} + {term} = {total + term}")
        total += term
    return tuple(facts)


def _guess(rng: Random, question: Question) -> int:
    """Exact on a single fact, otherwise up to five away."""
    if len(question.facts) == 1:
        return question.answer
    return max(0, question.answer + rng.randint(-5, 5))


def _sloppy_facts(rng: Random, question: Question) -> tuple[tuple[str, ...], int]:
    """Half the time forget the last term, and miscalculate some of the rest."""
    facts, answer = question.facts, question.answer
    if len(facts) > 1 and rng.random() < 0.5:
        return facts[:-1], _result(facts[-2])
    if rng.random() < 0.3:
        wrong = max(0, answer + rng.choice((-2, -1, 1, 2)))
        return (*facts[:-1], f"{facts[-1].split('= ')[0]}= {wrong}"), wrong
    return facts, answer


def _result(fact: str) -> int:
    return int(fact.split("= ")[1])
