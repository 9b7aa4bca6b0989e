# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""One spelling for answers that differ in typography only: Unicode, LaTeX layout, markdown.

The value is never touched here. Words that stood in \text{} stay recognisable, wrapped in the
marks TEXT_BEGIN and TEXT_END, because "42 \text{ m}" has a unit where "42 m" may be a product.
"""

from __future__ import annotations

import re

from megacurl.rewards.latex import brace_arguments

TEXT_BEGIN, TEXT_END = "\x02", "\x03"
CURRENCY = "¤"

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63"
_NAMED = {
    "×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "⁄": "/", "∕": "/",
    "√": "\\sqrt ", "π": "\\pi ", "∞": "\\infty ", "±": "\\pm ", "∪": "\\cup ", "∈": "\\in ",
    "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "≈": "\\approx ", "º": "°", "˚": "°",
    "。": ".", "、": ",", "“": '"', "”": '"', "‘": "'", "’": "'",
    "€": CURRENCY, "£": CURRENCY,
    "½": " 1/2", "⅓": " 1/3", "⅔": " 2/3", "¼": " 1/4", "¾": " 3/4", "⅕": " 1/5", "⅖": " 2/5",
    "⅗": " 3/5", "⅘": " 4/5", "⅙": " 1/6", "⅚": " 5/6", "⅛": " 1/8", "⅜": " 3/8", "⅝": " 5/8",
    "⅞": " 7/8",
}  # fmt: skip
_CHARACTERS: dict[int, str | None] = {
    # Controls, and the blanks of Unicode: no-break, thin, ideographic, ...
    **dict.fromkeys((*range(0x20), 0x7F, 0xA0, *range(0x2000, 0x200B)), " "),
    **dict.fromkeys((0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000), " "),
    **{ord(c): None for c in _INVISIBLE},
    **{ord(c): "-" for c in _DASHES},
    **{0xFF01 + i: chr(0x21 + i) for i in range(94)},
    **{ord(c): text for c, text in _NAMED.items()},
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")

_TEXT = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|textnormal|mbox|hbox|mathrm|mathtt|mathsf|rm)"
    r"\s*\{([^{}]*)\}"
)
_STYLE = re.compile(
    r"\\(?:boxed|fbox|mathbf|mathit|mathbb|mathcal|boldsymbol|bm|operatorname\*?|mathop|emph"
    r"|underline|displaystyle|ensuremath)\s*\{([^{}]*)\}"
)

# In order. (?<!\\) keeps the line break \\ apart from the commands \[ \( \, ...
_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\\$", CURRENCY),
        (r"(?<!\\)\\[()\[\]]|\$", ""),
        (r"(?<=[\w)}])\s*\*\*\s*(?=[\w({\\-])", "^"),
        (r"\*\*|__|`", ""),
        (r"\\(?:left|right|middle)(?![a-zA-Z])\.?|\\[bB]igg?[lrm]?(?![a-zA-Z])", ""),
        (r"\\(?:displaystyle|textstyle|limits|nolimits|bf|it)(?![a-zA-Z])", ""),
        (r",\\!\s*|\{,\}", ","),
        (r"(?<!\\)\\!", ""),
        (r"(?<!\\)\\[,;:> ]|~|\\q?quad(?![a-zA-Z])", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\[dt]binom(?![a-zA-Z])", r"\\binom"),
        (r"\\(?:cdot|times|ast)(?![a-zA-Z])", "*"),
        (r"\\div(?![a-zA-Z])", "/"),
        (r"\\(?:leqslant|leq|le)(?![a-zA-Z])|<=", r"\\le "),
        (r"\\(?:geqslant|geq|ge)(?![a-zA-Z])|>=", r"\\ge "),
        (r"\\(?:neq|ne)(?![a-zA-Z])|!=", r"\\ne "),
        (r"\\lt(?![a-zA-Z])", "<"),
        (r"\\gt(?![a-zA-Z])", ">"),
        (r"\\%", "%"),
        (r"\^\s*\{?\s*\\circ(?![a-zA-Z])\s*\}?|\\degree(?![a-zA-Z])", "°"),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\emptyset(?![a-zA-Z])", r"\\varnothing"),
        (r"\\colon(?![a-zA-Z])", ":"),
        (r"\\[lc]?dots(?![a-zA-Z])|…", "..."),
        (r"(?<![A-Za-z\\])sqrt(?=\s*[({0-9])", r"\\sqrt"),
        (r"(?<![A-Za-z\\])pi(?![A-Za-z])", r"\\pi"),
        (r"(?<![A-Za-z\\])(?:infinity|infty|inf)(?![A-Za-z])", r"\\infty"),
        (r"(?<=[(\[,])\s*\+\s*(?=\\infty)", ""),
        (r"(?:\\\\|\\newline)\s*$", ""),
    )
)
_SINGLE_GROUP = re.compile(r"([\^_])\s*\{\s*([A-Za-z0-9])\s*\}(?![0-9])")
_LOOSE_BLANK = re.compile(r"(?<![0-9.]) | (?![0-9.])")
_BLANKS = re.compile(r"\s+")
_LABEL = re.compile(r"^(?:the\s+)?(?:final\s+)?answer\s*(?:is|:)\s*:?\s*", re.IGNORECASE)


def normalise(text: str) -> str:
    """`text` in one spelling, blanks collapsed to one. For texts of a few hundred characters."""
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+", _superscript, text)
    text = re.sub(r"[₀-₉]+", lambda run: "_{" + run.group().translate(_SUBSCRIPTS) + "}", text)
    text = text.translate(_CHARACTERS).strip().strip("*").strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    text = brace_arguments(_unwrap(text))
    text = _SINGLE_GROUP.sub(r"\1\2", text)
    text = _LABEL.sub("", _BLANKS.sub(" ", text).strip())
    return _strip_punctuation(text)


def tight(text: str) -> str:
    """Normalised text without text marks and blanks, the form in which strings are compared.

    A blank between two digits stays: "4 2" is not 42.
    """
    return _LOOSE_BLANK.sub("", text.replace(TEXT_BEGIN, "").replace(TEXT_END, ""))


def _superscript(run: re.Match[str]) -> str:
    return "^{" + run.group().translate(_SUPERSCRIPTS) + "}"


def _unwrap(text: str) -> str:
    # Innermost first; a pass either removes a command or ends the loop.
    while True:
        plainer = _TEXT.sub(_words, _STYLE.sub(r"\1", text))
        if plainer == text:
            return text
        text = plainer


def _words(match: re.Match[str]) -> str:
    content = match.group(1).replace(TEXT_BEGIN, "").replace(TEXT_END, "")
    is_words = any(c.isalpha() for c in content) and not re.search(r"[0-9\\]", content)
    return f"{TEXT_BEGIN}{content}{TEXT_END}" if is_words else content


def _strip_punctuation(text: str) -> str:
    text = text.strip()
    while text and (text[-1] in ",;:?" or (text[-1] == "." and not text.endswith(".."))):
        text = text[:-1].rstrip()
    return text
