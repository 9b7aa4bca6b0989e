# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""Finds the final answer of a response: the last \boxed{} or "Answer:" line, by position.

The rule is strict on purpose. A response is paid for the answer it ends on; an earlier box, a
number in the prose or an answer that the length limit cut off are not looked at instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_END_OF_TURN = re.compile(
    r"<\|im_end\|>|<\|endoftext\|>|<\|eot_id\|>|<\|end_of_text\|>|<\|end\|>|</s>|<end_of_turn>"
    r"|<｜end▁of▁sentence｜>"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
# "\boxed" as the last thing of a cut-off text: its brace was never written.
_BOX_CUT = re.compile(r"\\(?:boxed|fbox)\s*$")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_MARK = r"[*_`]{0,3}"
_COLON = rf"[ \t]{{0,4}}{_MARK}[ \t]{{0,4}}[:：]{_MARK}"
# At the start of a line in any case ("the final answer: ..."), elsewhere only as written in the
# instruction ("Answer:") or after "final": "checking the answer: ..." is prose.
_ANSWER = re.compile(
    r"(?:^[^\w\n]*(?i:(?:so|thus|hence|therefore|and|the|my|our|final|correct)[ \t,]{1,4}){0,4}"
    rf"(?i:answers?)|(?<![A-Za-z])(?:Answers?|ANSWERS?|(?i:final[ ]answers?))){_COLON}"
    rf"|答案{_MARK}[ ]?[是为為]?[ ]?[:：]{_MARK}",
    re.MULTILINE,
)
_DISPLAY = {"$$": "$$", "\\[": "\\]"}
_KEYWORDS = ("nswer", "NSWER", "答案")
# Explanations are looked for in lines of ordinary length only.
_MAX_LINE = 1000
_PLACEHOLDER = re.compile(r"[$\s{}*\\]*(?:\\text\{)?answer\b", re.IGNORECASE)
_EXPLANATION = re.compile(
    r"\s\((?:since|because|as|see|i\.e\.|that is|by|from|using|where|note|check)\b[^\n]*\)[\s.]*$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=\S)(?:\.\s+(?=[A-Z])|[。；]\s*(?=\S))")


@dataclass(frozen=True, slots=True)
class _Found:
    """A candidate: where it starts, and its text (None when it is unfinished or empty)."""

    start: int
    text: str | None


def extract_answer(response: str, *, finished: bool) -> str | None:
    """The final answer as written (stripped), or None when there is none that counts.

    finished: False when the length limit ended the response. Then an "Answer:" line that runs to
    the very end of the text is unfinished ("Answer: 4" may be a cut 42); a closed box stays valid.
    """
    text, finished = _final_text(response, finished)
    box, spans = _last_box(text, finished)
    line = _last_answer_line(text, finished, spans)
    last = max((c for c in (box, line) if c is not None), key=lambda c: c.start, default=None)
    return last.text if last is not None else None


def _final_text(response: str, finished: bool) -> tuple[str, bool]:
    """The part after the thinking and before the end of the turn; thinking is not an answer."""
    end = _END_OF_TURN.search(response)
    if end is not None:
        response, finished = response[: end.start()], True
    thought_end = response.rfind("</think>")
    if thought_end >= 0:
        response = response[thought_end + len("</think>") :]
    open_thought = response.find("<think>")
    if open_thought >= 0:
        response = response[:open_thought]
    return response, finished


def _last_box(text: str, finished: bool) -> tuple[_Found | None, list[tuple[int, int]]]:
    """The last outermost box, and the spans of all boxes.

    A box that is never closed claims the rest of its line, so that a closed box nested in it is
    not taken for the answer.
    """
    spans: list[tuple[int, int]] = []
    last: _Found | None = None
    closers: dict[int, int] | None = None
    position = 0
    while (match := _BOX.search(text, position)) is not None:
        if closers is None:
            closers = _matching_braces(text, match.end() - 1)
        close = closers.get(match.end() - 1)
        if close is None:
            line_end = text.find("\n", match.end())
            position = len(text) if line_end < 0 else line_end
            last = _Found(match.start(), None)
        else:
            position = close + 1
            last = _Found(match.start(), _inside_boxes(text[match.end() : close]) or None)
        spans.append((match.start(), position))
    if not finished and (cut := _BOX_CUT.search(text, max(position, len(text) - 40))):
        last = _Found(cut.start(), None)
    return last, spans


def _matching_braces(text: str, start: int) -> dict[int, int]:
    r"""Position of the closing brace of each opened one; \{ and \} are characters, not braces."""
    closers: dict[int, int] = {}
    stack: list[int] = []
    for match in _BRACE.finditer(text, start):
        token = match.group()
        if token == "{":
            stack.append(match.start())
        elif token == "}" and stack:
            closers[stack.pop()] = match.start()
    return closers


def _inside_boxes(content: str) -> str:
    r"""Peels \boxed{...} that wrap the whole content, however many."""
    begin, end = 0, len(content)
    closers: dict[int, int] | None = None
    while True:
        while begin < end and content[begin].isspace():
            begin += 1
        while end > begin and content[end - 1].isspace():
            end -= 1
        match = _BOX.match(content, begin, end)
        if match is None:
            return content[begin:end]
        if closers is None:
            closers = _matching_braces(content, 0)
        if closers.get(match.end() - 1) != end - 1:
            return content[begin:end]
        begin, end = match.end(), end - 1


def _last_answer_line(text: str, finished: bool, boxes: list[tuple[int, int]]) -> _Found | None:
    """The last "Answer:" that is not inside a box. Searched backwards: responses are long."""
    limit = len(text)
    while True:
        hit = max(text.rfind(word, 0, limit) for word in _KEYWORDS)
        if hit < 0:
            return None
        limit = text.rfind("\n", 0, hit) + 1
        line_end = text.find("\n", hit)
        line_end = len(text) if line_end < 0 else line_end
        matches = [
            match
            for match in _ANSWER.finditer(text, limit, line_end)
            if not any(begin < match.end() <= end for begin, end in boxes)
        ]
        if matches:
            return _read_line(text, matches[-1], finished)


def _read_line(text: str, match: re.Match[str], finished: bool) -> _Found:
    begin, end = _answer_span(text, match.end())
    if not finished and end == len(text):
        return _Found(match.start(), None)
    return _Found(match.start(), _clean_line(text[begin:end]))


def _answer_span(text: str, begin: int) -> tuple[int, int]:
    """The rest of the line; the next line that has something when the rest is blank.

    Display math that opens there ("$$" or "\\[" alone on its line) is taken up to its end.
    """
    while True:
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        line = text[begin:end].strip(" \t\r*_`")
        if line or end == len(text):
            break
        begin = end + 1
    if line in _DISPLAY:
        close = text.find(_DISPLAY[line], text.index(line, begin) + 2)
        end = len(text) if close < 0 else close + 2
    return begin, end


def _clean_line(line: str) -> str | None:
    """The answer of an "Answer:" line without explanation after it, or None if it has none."""
    answer = line.strip().strip("*_`").strip()
    answer = answer.lstrip("}").strip()
    if not answer or _PLACEHOLDER.match(answer):
        return None
    if len(answer) <= _MAX_LINE:
        answer = _EXPLANATION.sub("", answer)
        sentence = _SENTENCE.search(answer)
        if sentence is not None and _is_remark(answer[sentence.end() :]):
            answer = answer[: sentence.start()]
    return answer.strip() or None


def _is_remark(sentence: str) -> bool:
    """A sentence after the answer that names no further value and no alternative."""
    long_enough = len(sentence.split()) >= 3 or len(sentence.encode()) >= 18
    return long_enough and not re.search(r"\d|\\|\bor\b|或", sentence)
