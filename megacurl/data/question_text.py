# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The words of a question without its layout, to tell whether two files ask the same."""

from __future__ import annotations

import re
import unicodedata

# Words, whole numbers and single signs; Chinese has no spaces, so each character is a word.
_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W\d_\u3400-\u9fff]+|\d+|[^\w\s]")
# The sentences around a question in the editions of DAPO-Math-17k.
_FRAME = re.compile(
    r"Solve the following math problem step by step\. The last line of your response.*?\n\n"
    r'(?P<question>.*?)\n\nRemember to put your answer on its own line after "Answer:"\.?',
    re.DOTALL,
)
_LAYOUT = re.compile(r"\\(?:left|right|displaystyle)(?![a-zA-Z])|\\[!,;:()\[\]]|[${}]")
_FRACTION = re.compile(r"\\[dt]frac(?![a-zA-Z])")
_CLOSING = frozenset(".?!:")


def question_tokens(text: str, instruction: str | None = None) -> tuple[str, ...]:
    """Words, numbers and signs of a question, in order.

    Upper case, spaces, dollar signs, braces, the sizes of brackets and the mark at the end make no
    difference, nor does text around the question: ``instruction``, and the sentences that published
    training files have there.

    Args:
        text: the user turn.
        instruction: the template with "{problem}" that was put around it, if any.
    """
    bare = unicodedata.normalize("NFKC", _without_frame(text, instruction)).casefold()
    tokens = _TOKEN.findall(_LAYOUT.sub(" ", _FRACTION.sub(r"\\frac", bare)))
    while tokens and tokens[-1] in _CLOSING:
        tokens.pop()
    return tuple(tokens)


def _without_frame(text: str, instruction: str | None) -> str:
    if instruction is not None:
        before, _, after = instruction.partition("{problem}")
        if text.startswith(before) and text.endswith(after):
            text = text[len(before) : len(text) - len(after)]
    framed = _FRAME.fullmatch(text.strip())
    return framed["question"] if framed else text
