# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Which text of a response is its final answer."""

from __future__ import annotations

import time

import pytest

from megacurl.rewards import extract_answer


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        # the keyword in its spellings
        ("Answer: 42", "42"),
        ("**Answer**: 42", "42"),
        ("**Final Answer:** **42**", "42"),
        ("### Final Answer: 42\n\n", "42"),
        ("> answer : `42`", "42"),
        ("so the final answer: 42", "42"),
        ("The answer: 42", "42"),
        ("\\textbf{Answer:} 42", "42"),
        ("Answer：42", "42"),
        ("最终答案是：42。", "42。"),
        ("答案: 42", "42"),
        # where the answer stands
        ("Answer:\n\n42", "42"),
        ("Answer:\n$$\n42\n$$\nDone.", "$$\n42\n$$"),
        ("Answer:\n\\[\n42\n\\]", "\\[\n42\n\\]"),
        ("Answer: 17. Answer: 42", "42"),
        ("Answer: 1\nAnswer: 2", "2"),
        ("\\boxed{1}\nAnswer: 2", "2"),
        ("Answer: 2\n\\boxed{1}", "1"),
        ("Answer: x = \\boxed{42} cm", "42"),
        ("\\boxed{42}. Checking the answer: it is fine.", "42"),
        # remarks behind it
        ("Answer: 42. I hope it is correct.", "42"),
        ("Answer: 42 (since 6 * 7 = 42)", "42"),
        ("Answer: 42. Or 43.", "42. Or 43."),
        ("Answer: A. But B or C fit too.", "A. But B or C fit too."),
        # boxes
        ("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{\\{1,2\\}}", "\\{1,2\\}"),
        ("\\boxed{42\\\\}", "42\\\\"),
        ("\\fbox {42}", "42"),
        ("\\boxed{\\boxed{ 42 } }", "42"),
        ("\\boxed{\\boxed{1}\\boxed{2}}", "\\boxed{1}\\boxed{2}"),
        ("\\boxed{\\text{Answer: }42}", "\\text{Answer: }42"),
        ("\\boxed{17 is wrong.\nSo \\boxed{42}", "42"),
        # turns and thinking
        ("Answer: 42<|im_end|>\nuser\nAnswer: 1", "42"),
        ("Answer: 42</s>", "42"),
        ("<think>\\boxed{1}</think> Answer: 2", "2"),
        ("a</think>b</think>\\boxed{3}", "3"),
        # no answer
        ("", None),
        ("The total is 42.", None),
        ("Answer 42", None),
        ("The answer is 42", None),
        ("xAnswer: 3", None),
        ("Answer:", None),
        ("Answer: **", None),
        ("Answer: $Answer", None),
        ("Answer: \\$Answer (without quotes)", None),
        ("\\boxed{42}\nAnswer:", None),
        ("\\boxed{}", None),
        ("\\boxed{42} or \\boxed{ }", None),
        ("\\boxed{42} so \\boxed{4", None),
        ("\\boxed{\\boxed{42}", None),
        ("\\boxed{\\frac{3}{4}", None),
        ("\\boxed 42", None),
        ("<think>\\boxed{42}</think> I could not finish.", None),
        ("<think> so \\boxed{42}", None),
        ("<|im_end|>Answer: 42", None),
    ],
)
def test_finished(response: str, expected: str | None) -> None:
    assert extract_answer(response, finished=True) == expected


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Answer: 4", None),
        ("Answer: 42.", None),
        ("Answer: 42 ", None),
        ("Answer:", None),
        ("Answer:\n4", None),
        ("Answer:\n$$\n4", None),
        ("Answer: 7\nso Answer: 4", None),
        ("\\boxed{42}\nAnswer: 4", None),
        ("Answer: 42\n", "42"),
        ("Answer: 42\nwhich", "42"),
        ("Answer: 4<|im_end|>", "4"),
        ("Answer: \\boxed{42}", "42"),
        ("\\boxed{42} and the", "42"),
        ("\\boxed{42} so \\boxed{4", None),
        ("\\boxed{42} so \\boxed", None),
    ],
)
def test_cut_off_by_the_length_limit(response: str, expected: str | None) -> None:
    assert extract_answer(response, finished=False) == expected


@pytest.mark.parametrize(
    "piece",
    ["\\boxed{", "\\boxed{\n", "\\boxed ", "Answer:", "Answer:\n", "Answer: 1. A", "nswer\n",
     "answer ", " (since", "{", "}", "<think>", "**", "$$\n", "答案\n", "the final "],
)  # fmt: skip
def test_long_hostile_text_is_read_in_no_time(piece: str) -> None:
    text = "Answer: " + piece * (40_000 // len(piece))
    start = time.process_time()
    for finished in (True, False):
        extract_answer(text, finished=finished)
    assert time.process_time() - start < 1.0
