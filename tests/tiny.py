# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Tiny real models in Hugging Face folders, and trajectories to train them on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from megacurl.trajectory import Trajectory

VOCAB = 261
"""Odd, so that padding for tensor parallelism is always needed."""

KINDS = ("qwen2-tied", "qwen2-untied", "llama-tied", "llama-untied")


def make_model(
    folder: Path, kind: str, *, max_shard_size: str = "5GB", seed: int = 0, head_dim: int = 8
) -> Path:
    """Save a random model of ``kind`` (a member of KINDS) with a byte tokenizer."""
    family, tying = kind.split("-")
    shape: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": 4 * head_dim,
        "intermediate_size": 48,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "tie_word_embeddings": tying == "tied",
        "initializer_range": 0.1,
        "bos_token_id": None,
        "eos_token_id": 258,
        "pad_token_id": 256,
    }
    torch.manual_seed(seed)
    network: Any
    if family == "qwen2":
        network = Qwen2ForCausalLM(Qwen2Config(**shape, rope_theta=10000.0))
    else:
        network = LlamaForCausalLM(LlamaConfig(**shape, rope_theta=500000.0))
    with torch.no_grad():  # norms and biases start at 1 and 0; give every tensor something to lose
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    network.save_pretrained(folder, max_shard_size=max_shard_size)
    GenerationConfig(eos_token_id=258, pad_token_id=256).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token a byte, then pad, start and end of turn; with a chat template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end>",
        additional_special_tokens=["<start>"],
    )
    # Ids 256.. in the order pad, end, start; 258 is the model's end of sequence.
    fast.chat_template = (
        "{% for m in messages %}{{ '<start>' + m['content'] + '<end>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start>' }}{% endif %}"
    )
    return fast


def make_trajectories(
    groups: int = 3, n: int = 4, seed: int = 0, vocab: int = VOCAB
) -> list[Trajectory]:
    """Random trajectories of ragged length, some correct, some truncated, one of a single token."""
    r = random.Random(seed)
    found = []
    for group in range(groups):
        prompt = tuple(r.randrange(vocab) for _ in range(r.randint(3, 12)))
        for k in range(n):
            length = 1 if (group, k) == (0, 0) else r.randint(2, 30)
            correct = r.random() < 0.5
            found.append(
                Trajectory(
                    prompt_id=f"q{group}",
                    group=group,
                    prompt_ids=prompt,
                    response_ids=tuple(r.randrange(vocab) for _ in range(length)),
                    log_probs=tuple(-r.random() * 5 for _ in range(length)),
                    truncated=r.random() < 0.2,
                    version=0,
                    correct=correct,
                    score=float(correct),
                    reward=1.0 if correct else -1.0,
                    parsed=True,
                    timeout=False,
                )
            )
    return found
