# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Parameter arithmetic against published counts and against models that transformers builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from megacurl.config.decoder_size import DecoderSize, read_hf_config
from megacurl.config.errors import ConfigError

_TINY: dict[str, Any] = {
    "num_hidden_layers": 3,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
}


def test_qwen_7b_has_its_published_size(qwen_7b: dict[str, Any]) -> None:
    size = DecoderSize.from_hf(qwen_7b)
    assert size.total_parameters() == 7_615_616_512
    assert size.total_parameters() - size.total_parameters("critic") == (152064 - 1) * 3584
    assert (size.head_dim, size.num_query_groups, size.qkv_bias) == (128, 4, True)


@pytest.mark.parametrize(
    ("model_type", "fields"),
    [
        ("qwen2", {"tie_word_embeddings": False}),
        ("qwen2", {"tie_word_embeddings": True}),
        ("qwen3", {"head_dim": 16, "tie_word_embeddings": True}),
        ("llama", {"tie_word_embeddings": False}),
        ("llama", {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False}),
        ("mistral", {"head_dim": 16, "tie_word_embeddings": False}),
    ],
)
def test_counts_equal_those_of_transformers(model_type: str, fields: dict[str, Any]) -> None:
    config = {**_TINY, **fields}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **config))
    expected = sum(parameter.numel() for parameter in model.parameters())
    assert DecoderSize.from_hf({"model_type": model_type, **config}).total_parameters() == expected


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("role", ["actor", "critic"])
def test_ranks_sum_up_to_the_model(role: Any, tied: bool) -> None:
    size = DecoderSize.from_hf({**_TINY, "model_type": "qwen3", "tie_word_embeddings": tied})
    tp, stages = 2, 3
    parts = [
        size.stage_parameters(role, 1, tp=tp, first=stage == 0, last=stage == stages - 1)
        for stage in range(stages)
    ]
    # Norms are on every tensor parallel rank, a critic's head too, and a tied LM head once more.
    per_layer_norms = 2 * 32 + 2 * 8
    replicated = 3 * per_layer_norms + 32 + (32 if role == "critic" else 0)
    copies = 96 * 32 if tied and role == "actor" else 0
    assert tp * sum(parts) == size.total_parameters(role) + (tp - 1) * replicated + copies


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden_size": None}, "hidden_size is None, must be a positive integer"),
        ({"num_hidden_layers": 2.0}, "num_hidden_layers is 2.0, must be a positive integer"),
        ({"vocab_size": -1}, "vocab_size is -1, must be a positive integer"),
        ({"head_dim": "x"}, "head_dim is 'x', must be a positive integer"),
        ({"num_experts": 8}, "num_experts is 8: a mixture of experts is not supported"),
        ({"hidden_size": 30}, "hidden_size 30 is no multiple of num_attention_heads 4"),
        ({"num_key_value_heads": 3}, "num_attention_heads 4 is no multiple of num_key_value_heads"),
    ],
)
def test_unusable_configs_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DecoderSize.from_hf({**_TINY, **fields})


def test_all_missing_sizes_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        DecoderSize.from_hf({"text_config": _TINY})
    assert len(caught.value.problems) == 5


def test_read_hf_config(tmp_path: Path, qwen_7b_folder: Path) -> None:
    assert read_hf_config(qwen_7b_folder)["model_type"] == "qwen2"
    with pytest.raises(ConfigError, match=r"--hf-checkpoint .*absent.*cannot be read: No such"):
        read_hf_config(tmp_path / "absent")
    for text, message in (("{", "not valid JSON"), ("[1]", "holds no JSON object")):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ConfigError, match=f"--critic-hf-checkpoint .*{message}"):
            read_hf_config(tmp_path, "--critic-hf-checkpoint")
