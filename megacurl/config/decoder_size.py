# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A dense decoder's shape from its Hugging Face config.json, and its parameter arithmetic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from megacurl.config.errors import ConfigError, raise_problems

Role = Literal["actor", "critic"]

_REQUIRED = (
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "vocab_size",
)
_EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True)
class DecoderSize:
    """Sizes of a decoder with grouped-query attention and a gated MLP (Qwen, Llama, Mistral)."""

    model_type: str
    num_layers: int
    hidden_size: int
    ffn_hidden_size: int
    num_attention_heads: int
    num_query_groups: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int | None
    tie_word_embeddings: bool
    qkv_bias: bool
    attention_output_bias: bool
    mlp_bias: bool
    qk_norm: bool

    @classmethod
    def from_hf(cls, hf_config: Mapping[str, Any], source: str = "config.json") -> DecoderSize:
        """Read the shape out of a parsed config.json; ``source`` is named in errors.

        Raises ConfigError when sizes are missing, not positive integers or inconsistent, and for a
        mixture of experts, whose layout this arithmetic does not cover.
        """
        _check_sizes(hf_config, source)
        heads = int(hf_config["num_attention_heads"])
        hidden = int(hf_config["hidden_size"])
        model_type = str(hf_config.get("model_type", "unknown"))
        # Qwen2 always has biases on q, k, v and never on the output; its config.json has no key.
        attention_bias = bool(hf_config.get("attention_bias", False))
        return cls(
            model_type=model_type,
            num_layers=int(hf_config["num_hidden_layers"]),
            hidden_size=hidden,
            ffn_hidden_size=int(hf_config["intermediate_size"]),
            num_attention_heads=heads,
            num_query_groups=int(hf_config.get("num_key_value_heads") or heads),
            head_dim=int(hf_config.get("head_dim") or hidden // heads),
            vocab_size=int(hf_config["vocab_size"]),
            max_position_embeddings=hf_config.get("max_position_embeddings"),
            tie_word_embeddings=bool(hf_config.get("tie_word_embeddings", False)),
            qkv_bias=attention_bias or model_type == "qwen2",
            attention_output_bias=attention_bias and model_type != "qwen2",
            mlp_bias=bool(hf_config.get("mlp_bias", False)),
            qk_norm=model_type == "qwen3",
        )

    def layer_parameters(self, tp: int = 1) -> int:
        """Parameters of one layer on one of ``tp`` tensor parallel ranks.

        Projections are split over the ranks; norms and the biases of row-parallel matrices are not.
        """
        query = self.num_attention_heads * self.head_dim
        key_value = 2 * self.num_query_groups * self.head_dim
        split = self.hidden_size * (2 * query + key_value)
        split += 3 * self.hidden_size * self.ffn_hidden_size
        split += (query + key_value) * self.qkv_bias + 2 * self.ffn_hidden_size * self.mlp_bias
        replicated = 2 * self.hidden_size + 2 * self.head_dim * self.qk_norm
        replicated += self.hidden_size * (self.attention_output_bias + self.mlp_bias)
        return split // tp + replicated

    def stage_parameters(
        self,
        role: Role,
        layers: int,
        *,
        tp: int = 1,
        first: bool = True,
        last: bool = True,
        vocab_size: int | None = None,
    ) -> int:
        """Parameters that one rank of a pipeline stage with ``layers`` layers holds.

        The first stage has the embedding; the last one the final norm and the LM head (actor) or a
        value head of ``hidden_size`` weights (critic). A tied LM head costs nothing on the stage
        of the embedding and a copy of it elsewhere. ``vocab_size``: rows, padded; default: the
        model's own.
        """
        embedding = (vocab_size or self.vocab_size) // tp * self.hidden_size
        total = layers * self.layer_parameters(tp)
        if first:
            total += embedding
        if last:
            total += self.hidden_size
            if role == "critic":
                total += self.hidden_size
            elif not (self.tie_word_embeddings and first):
                total += embedding
        return total

    def total_parameters(self, role: Role = "actor") -> int:
        """Parameters of the whole model, vocabulary not padded."""
        return self.stage_parameters(role, self.num_layers)


def read_hf_config(folder: str | Path, flag: str = "--hf-checkpoint") -> dict[str, Any]:
    """Parse ``folder/config.json``. Raises ConfigError naming ``flag`` when there is none."""
    file = Path(folder) / "config.json"
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{flag} {folder}: {file} cannot be read: {error.strerror}; give the folder of a "
            "Hugging Face model on this machine"
        ) from None
    except ValueError as error:
        raise ConfigError(
            f"{flag} {folder}: {file} is not valid JSON ({error}); download it again"
        ) from None
    if not isinstance(parsed, dict):
        raise ConfigError(f"{flag} {folder}: {file} holds no JSON object; is it a model's folder?")
    return parsed


def _check_sizes(hf_config: Mapping[str, Any], source: str) -> None:
    problems = [
        f"{source}: {key} is {hf_config.get(key)!r}, must be a positive integer; "
        f"only dense decoder models are supported, this is a {hf_config.get('model_type')!r}"
        for key in _REQUIRED
        if not _is_size(hf_config.get(key))
    ]
    problems += [
        f"{source}: {key} is {hf_config[key]!r}, must be a positive integer"
        for key in ("num_key_value_heads", "head_dim", "max_position_embeddings")
        if hf_config.get(key) is not None and not _is_size(hf_config[key])
    ]
    problems += [
        f"{source}: {key} is {hf_config[key]}: a mixture of experts is not supported; "
        "choose a dense model"
        for key in _EXPERT_KEYS
        if hf_config.get(key)
    ]
    raise_problems(problems)
    hidden, heads = hf_config["hidden_size"], hf_config["num_attention_heads"]
    if hf_config.get("head_dim") is None and hidden % heads:
        raise ConfigError(
            f"{source}: hidden_size {hidden} is no multiple of num_attention_heads {heads} and "
            "there is no head_dim; the file is not a usable model config"
        )
    groups = hf_config.get("num_key_value_heads") or heads
    if heads % groups:
        raise ConfigError(
            f"{source}: num_attention_heads {heads} is no multiple of num_key_value_heads {groups}"
        )


def _is_size(value: object) -> bool:
    return type(value) is int and value > 0
