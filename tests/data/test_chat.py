# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Encoding with a real (tiny) transformers tokenizer: template, BOS, length limit, refusals."""

from __future__ import annotations

import logging

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from megacurl.data import DataError, Prompt, encode_prompts

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'tool' %}"
    "{{ raise_exception('no tools') }}{% endif %}<|im_start|>{{ m.role }}\n"
    "{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if quiet is defined and quiet %}<think></think>{% endif %}{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    specials = ["<s>", "<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate(specials + alphabet)}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(specials)
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", vocabulary["<s>"])]
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>")
    fast.chat_template = TEMPLATE
    return fast


def prompt(*turns: tuple[str, str], id_: str = "a") -> Prompt:
    return Prompt(id_, tuple({"role": r, "content": c} for r, c in turns), "1", "set")


def test_template_equals_transformers(tokenizer: PreTrainedTokenizerFast) -> None:
    asked = [prompt(("system", "sys"), ("user", "2 + 2 = ?")), prompt(("user", "求 √4\x0c"))]
    encoded = encode_prompts(asked, tokenizer, max_prompt_len=500)
    assert encoded.dropped_overlong == 0
    for (item, ids), original in zip(encoded.items, asked, strict=True):
        assert item is original
        assert type(ids) is list and all(type(i) is int for i in ids)
        reference = tokenizer.apply_chat_template(
            list(original.messages), add_generation_prompt=True, tokenize=True, return_dict=False
        )
        assert ids == reference
        assert ids.count(tokenizer.bos_token_id) == 1
        assert tokenizer.decode(ids).endswith("<|im_start|>assistant\n")


def test_template_options_reach_the_template(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = encode_prompts(
        [prompt(("user", "q"))], tokenizer, max_prompt_len=99, template_options={"quiet": True}
    )
    assert tokenizer.decode(encoded.items[0][1]).endswith("<think></think>")


def test_plain_text_for_base_models(tokenizer: PreTrainedTokenizerFast) -> None:
    asked = [prompt(("system", "s"), ("user", "u"))]
    encoded = encode_prompts(asked, tokenizer, apply_chat_template=False, max_prompt_len=99)
    assert tokenizer.decode(encoded.items[0][1]) == "<s>s\n\nu"


def test_overlong_are_dropped_and_counted(
    tokenizer: PreTrainedTokenizerFast, caplog: pytest.LogCaptureFixture
) -> None:
    asked = [prompt(("user", "x" * n), id_=str(n)) for n in (1, 5, 9)]
    plain = {"apply_chat_template": False}
    encoded = encode_prompts(asked, tokenizer, max_prompt_len=6, **plain)  # type: ignore[arg-type]
    assert [(p.id, len(ids)) for p, ids in encoded.items] == [("1", 2), ("5", 6)]
    assert encoded.dropped_overlong == 1
    with caplog.at_level(logging.WARNING):
        encode_prompts(asked, tokenizer, max_prompt_len=6, **plain)  # type: ignore[arg-type]
    assert "1 prompts are longer than 6 tokens" in caplog.text
    with pytest.raises(DataError, match="drops all 3 prompts; the shortest has 2 tokens"):
        encode_prompts(asked, tokenizer, max_prompt_len=1, **plain)  # type: ignore[arg-type]


def test_many_prompts_keep_their_order(tokenizer: PreTrainedTokenizerFast) -> None:
    asked = [prompt(("user", str(n)), id_=str(n)) for n in range(2100)]
    encoded = encode_prompts(asked, tokenizer, apply_chat_template=False, max_prompt_len=9)
    assert [p.id for p, _ in encoded.items] == [str(n) for n in range(2100)]
    assert tokenizer.decode(encoded.items[1999][1]) == "<s>1999"


def test_refusals(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(DataError, match=r"prompt 'a': the chat template refuses turns \['tool'"):
        encode_prompts([prompt(("tool", "x"), ("user", "u"))], tokenizer, max_prompt_len=9)
    with pytest.raises(DataError, match="max_prompt_len=0 must be at least 1"):
        encode_prompts([], tokenizer, max_prompt_len=0)
    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer)
    with pytest.raises(DataError, match=r"no chat template.*--no-apply-chat-template"):
        encode_prompts([prompt(("user", "u"))], bare, max_prompt_len=9)
