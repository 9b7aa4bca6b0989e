# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a model family is, and how the one of an HF folder is found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from megacurl.config.decoder_size import DecoderSize, read_hf_config
from megacurl.config.errors import ConfigError
from megacurl.models import families
from megacurl.models.shape import ModelShape, RopeScaling
from megacurl.models.weight_map import WeightMap
from megacurl.utils.names import nearest_hint

HFConfig = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """read_shape: HF config -> shape (ConfigError for what the family cannot train).
    weight_map: shape, make_vocab_size_divisible_by -> the map of HF and Megatron parameters.
    """

    name: str
    read_shape: Callable[[HFConfig], ModelShape]
    weight_map: Callable[[ModelShape, int], WeightMap]


def family_names() -> list[str]:
    """The ``model_type`` values that can be trained: the files of ``models/families``."""
    return sorted(module.name for module in pkgutil.iter_modules(families.__path__))


def get_family(model_type: str) -> Family:
    """The family of an HF ``model_type``; ConfigError with the nearest name if there is none."""
    names = family_names()
    if model_type not in names:
        raise ConfigError(
            f"model_type {model_type!r} is not supported{nearest_hint(model_type, names)}; "
            f"supported: {', '.join(names)}"
        )
    family: Family = importlib.import_module(f"{families.__name__}.{model_type}").FAMILY
    return family


def load_shape(folder: str | Path) -> tuple[Family, ModelShape]:
    """Family and shape of the model in an HF folder."""
    config = read_hf_config(folder)
    family = get_family(str(config.get("model_type", "")))
    try:
        return family, family.read_shape(config)
    except KeyError as error:
        raise ConfigError(
            f"{Path(folder) / 'config.json'} lacks the field {error}; add it, or "
            "download the file again"
        ) from error


def read_decoder_shape(config: HFConfig, *, family: str, qkv_bias: bool) -> ModelShape:
    """The fields that Llama-like configs share.

    Raises KeyError for a missing field, ConfigError for sizes that are none or do not fit together.
    """
    refuse(config, "hidden_act", "silu")
    theta, scaling = read_rope(config)
    size = DecoderSize.from_hf(config)
    return ModelShape(
        family=family,
        num_layers=size.num_layers,
        hidden_size=size.hidden_size,
        ffn_hidden_size=size.ffn_hidden_size,
        num_attention_heads=size.num_attention_heads,
        num_query_groups=size.num_query_groups,
        head_dim=size.head_dim,
        vocab_size=size.vocab_size,
        max_position_embeddings=int(config["max_position_embeddings"]),
        rope_theta=theta,
        rope_scaling=scaling,
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        qkv_bias=qkv_bias,
        tied=size.tie_word_embeddings,
    )


def read_rope(config: HFConfig) -> tuple[float, RopeScaling | None]:
    """Rope base and scaling, from the fields of transformers 5 or of earlier versions."""
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = float(rope.get("rope_theta") or config.get("rope_theta") or 10000.0)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return theta, None
    constants = ("low_freq_factor", 1.0), ("high_freq_factor", 4.0)
    fixed = (*constants, ("original_max_position_embeddings", 8192))
    if kind != "llama3" or any(float(rope.get(name, value)) != value for name, value in fixed):
        raise ConfigError(
            f"rope scaling {rope} is not supported; supported: none, or llama3 with "
            + ", ".join(f"{name} {value}" for name, value in fixed)
        )
    return theta, RopeScaling(factor=float(rope["factor"]))


def refuse(config: HFConfig, field: str, supported: object) -> None:
    """ConfigError if a config field that the family cannot train has another value."""
    value = config.get(field, supported)
    if value != supported:
        raise ConfigError(f"config.json has {field}={value!r}; only {supported!r} is supported")
