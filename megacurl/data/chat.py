# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Prompts to token ids: the tokenizer's chat template, batch tokenisation, the length limit."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from megacurl.data.errors import DataError, shown
from megacurl.data.prompt import Prompt

logger = logging.getLogger(__name__)

_CHUNK = 1024


class ChatTokenizer(Protocol):
    """The part of a transformers tokenizer that is used here."""

    chat_template: Any

    def __call__(self, text: list[str], *, add_special_tokens: bool) -> Mapping[str, Any]: ...

    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any: ...


@dataclass(frozen=True)
class EncodedPrompts:
    """items: (prompt, token ids) in the given order; dropped_overlong: prompts left out."""

    items: list[tuple[Prompt, list[int]]]
    dropped_overlong: int


def encode_prompts(
    prompts: Sequence[Prompt],
    tokenizer: ChatTokenizer,
    *,
    apply_chat_template: bool = True,
    max_prompt_len: int,
    template_options: Mapping[str, Any] | None = None,
) -> EncodedPrompts:
    """Token ids that the model continues, and how many prompts exceed max_prompt_len tokens.

    apply_chat_template: True renders the turns with the tokenizer's template and its opening of
        the assistant turn. False joins the turns' texts by a blank line and adds the tokenizer's
        own special tokens (a BOS where it has one), which is what a base model expects.
    template_options: extra variables of the template, such as {"enable_thinking": False}.

    Raises DataError for a missing or failing template, an empty prompt, and when no prompt fits.
    """
    if max_prompt_len < 1:
        raise DataError(f"max_prompt_len={max_prompt_len} must be at least 1 token")
    if apply_chat_template and not tokenizer.chat_template:
        raise DataError(
            "the tokenizer has no chat template; put chat_template.jinja beside it, or send the "
            "plain text with --no-apply-chat-template"
        )
    items: list[tuple[Prompt, list[int]]] = []
    shortest: int | None = None
    for prompt, ids in _encoded(prompts, tokenizer, apply_chat_template, template_options or {}):
        if not ids:
            raise DataError(f"prompt {shown(prompt.id)} encodes to no tokens; remove it")
        shortest = len(ids) if shortest is None else min(shortest, len(ids))
        if len(ids) <= max_prompt_len:
            items.append((prompt, ids))
    dropped = len(prompts) - len(items)
    if shortest is not None and not items:
        raise DataError(
            f"--rollout-max-prompt-len {max_prompt_len} drops all {dropped} prompts; the shortest "
            f"has {shortest} tokens, raise it to at least that"
        )
    if dropped:
        logger.warning("%d prompts are longer than %d tokens: dropped", dropped, max_prompt_len)
    return EncodedPrompts(items, dropped)


def _encoded(
    prompts: Sequence[Prompt],
    tokenizer: ChatTokenizer,
    chat: bool,
    options: Mapping[str, Any],
) -> Iterator[tuple[Prompt, list[int]]]:
    # Rendering to text first gives plain lists in every transformers version (5 returns a
    # BatchEncoding from apply_chat_template) and lets the fast tokenizer work on whole chunks.
    for begin in range(0, len(prompts), _CHUNK):
        chunk = prompts[begin : begin + _CHUNK]
        texts = [_render(p, tokenizer, options) if chat else p.text for p in chunk]
        # The template writes its special tokens itself; adding them again would double the BOS.
        rows = tokenizer(texts, add_special_tokens=not chat)["input_ids"]
        for prompt, ids in zip(chunk, rows, strict=True):
            yield prompt, [int(token) for token in ids]


def _render(prompt: Prompt, tokenizer: ChatTokenizer, options: Mapping[str, Any]) -> str:
    try:
        text = tokenizer.apply_chat_template(
            [dict(message) for message in prompt.messages],
            add_generation_prompt=True,
            tokenize=False,
            **options,
        )
    except Exception as error:
        roles = [message["role"] for message in prompt.messages]
        raise DataError(
            f"prompt {shown(prompt.id)}: the chat template refuses turns {roles} ({error}); "
            "change the turns or the template, or give --no-apply-chat-template"
        ) from error
    return str(text)
