# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Training questions that evaluation sets ask: rows of the real training set, and made-up ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from megacurl.config.eval_specs import EvalSpec
from megacurl.data import DAPO_INSTRUCTION, DataError, load_prompts
from megacurl.data.prompt import Prompt
from megacurl.evaluation.decontaminate import decontaminate, find_twins, format_overlap
from megacurl.evaluation.overlap import find_overlap
from megacurl.evaluation.question_set import QuestionSet, read_question_sets

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "examples" / "data"
# 72 rows of DAPO-Math-17k that repeat questions of AMC23 or MATH-500, and 32 others; 7 of these
# are like a MATH-500 question with other numbers.
MIXED = ROOT / "tests" / "fixtures" / "data" / "dapo_math_17k_overlap.jsonl"
PUBLISHED = ROOT / "tests" / "fixtures" / "data" / "dapo_published_layout_fixture.parquet"


def benchmarks(*names: str, instruction: str | None = None) -> list[QuestionSet]:
    return read_question_sets([f"{BENCHMARKS / name}.jsonl" for name in names], "--x", instruction)


def question(text: str, name: str = "q") -> Prompt:
    return Prompt(name, ({"role": "user", "content": text},), "1", "s")


def asked(*texts: str) -> list[QuestionSet]:
    prompts = [question(text, f"e{index}") for index, text in enumerate(texts)]
    return [QuestionSet(EvalSpec("mine", "mine.jsonl"), prompts)]


def is_twin(text: str, evaluated: str) -> bool:
    return bool(find_twins([question(text)], asked(evaluated)))


@pytest.mark.parametrize(("name", "listed", "held"), [("amc23", 22, 27), ("math500", 13, 27)])
def test_every_listed_copy_in_the_real_training_set_is_found(
    name: str, listed: int, held: int
) -> None:
    (one,) = benchmarks(name)
    overlap = find_overlap(name, [prompt.id for prompt in one.prompts])
    assert overlap is not None and len(overlap.ids) == listed
    found = {twin.question_id for twin in find_twins(load_prompts(str(MIXED)), [one])}
    assert overlap.ids <= found
    assert len(found) == held


def test_only_copies_are_left_out() -> None:
    prompts = load_prompts(str(MIXED))
    result = decontaminate(prompts, benchmarks("aime24", "amc23", "math500"))
    assert result.note() == "39 of amc23, 33 of math500"
    assert len(result.kept) == 32
    assert result.kept == [prompt for prompt in prompts if prompt in result.kept], "in order"
    assert any("$128^{2023}$ is divided by $126$" in prompt.text for prompt in result.kept)
    assert not {twin.prompt_id for twin in result.twins} & {prompt.id for prompt in result.kept}


def test_clean_benchmarks_stay_clean() -> None:
    prompts = load_prompts(str(PUBLISHED)) + load_prompts(str(MIXED))
    result = decontaminate(prompts, benchmarks("aime24", "aime25", "gsm8k_test_200"))
    assert (result.kept, result.note()) == (prompts, "none")


def test_instructions_around_questions_are_no_part_of_them() -> None:
    plain = decontaminate(load_prompts(str(MIXED)), benchmarks("amc23"))
    mine = "You are good at sums, and this is one of them: {problem} Think before you answer it."
    for instruction in (DAPO_INSTRUCTION, mine):
        prompts = load_prompts(str(MIXED), instruction=instruction)
        sets = benchmarks("amc23", instruction=instruction)
        assert decontaminate(prompts, sets, instruction).twins == plain.twins
    framed = load_prompts(str(MIXED), instruction=DAPO_INSTRUCTION)
    assert decontaminate(framed, benchmarks("amc23")).twins == plain.twins


def test_a_template_with_other_numbers_is_another_question() -> None:
    story = "Tom has {} bags with {} red apples each and finds {} more; how many apples are there?"
    assert is_twin(story.format(4, 3, 7), story.format(4, 3, 7))
    assert is_twin(story.format(4, 3, 7) + " Give a number.", story.format(4, 3, 7))
    assert not is_twin(story.format(4, 3, 7), story.format(4, 3, 8))
    chinese = "甲、乙两人从相距{}千米的两地同时出发，相向而行，{}小时后相遇。甲每小时走多少千米？"
    assert is_twin(chinese.format(36, 4) + "请给出整数答案。", chinese.format(36, 4))
    assert not is_twin(chinese.format(36, 4), chinese.format(48, 4))
    # Too short to tell a copy by parts of it.
    assert is_twin("What is 4 * 3 + 4?", "what is $4*3+4$")
    assert not is_twin("What is 4 * 3 + 4?", "What is 4 * 3 + 3?")


def test_listed_questions_are_matched_with_other_numbers_too() -> None:
    """The list names math500-precalculus/96, which the training set has with other numbers."""
    (one,) = benchmarks("math500")
    (listed,) = (prompt for prompt in one.prompts if prompt.id == "math500-precalculus/96")
    renamed = dataclasses.replace(listed, id="x")
    prompts = load_prompts(str(MIXED))
    assert len(find_twins(prompts, [dataclasses.replace(one, prompts=[listed])])) == 1
    assert find_twins(prompts, [dataclasses.replace(one, prompts=[renamed])]) == []


def test_the_most_similar_set_counts() -> None:
    long = "How many of the first 100 positive integers are divisible by 3 but neither by 5 nor 7"
    near, same = asked(f"{long}, counted with care?"), asked(f"{long}?")
    sets = [*near, dataclasses.replace(same[0], spec=EvalSpec("same", "same.jsonl"))]
    (twin,) = find_twins([question(f"{long}.")], sets)
    assert twin.set_name == "same"


def test_nothing_left_is_refused() -> None:
    with pytest.raises(DataError, match="--decontaminate leaves none of the 1 training questions"):
        decontaminate([question("1 + 1?")], asked("1+1"))
    assert decontaminate([], asked("1+1")).kept == []


def test_the_report() -> None:
    text = format_overlap(load_prompts(str(MIXED)), benchmarks("aime24", "amc23"))
    assert text.splitlines() == [
        "--decontaminate would leave out 39 of 104 questions",
        "  aime24  0, which ask 0 of its 30",
        "  amc23   39, which ask 27 of its 40",
    ]
