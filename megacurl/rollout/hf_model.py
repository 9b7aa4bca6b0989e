# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Loading a Hugging Face model: nothing made up, and no side effect on the trainer."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel
from transformers.utils import logging as hf_logging

from megacurl.rollout.types import TensorMeta


def read_config(model: str | Path | PretrainedConfig, load_weights: bool) -> PretrainedConfig:
    """The model's config.

    Raises:
        FileNotFoundError: the folder has no config.json.
        ValueError: weights are wanted, but ``model`` is a bare config.
    """
    if isinstance(model, PretrainedConfig):
        if load_weights:
            raise ValueError("load_weights=True needs a model folder, but a config was given")
        return copy.deepcopy(model)
    if not (Path(model) / "config.json").is_file():
        raise FileNotFoundError(f"{model} is not a Hugging Face model folder: no config.json")
    return AutoConfig.from_pretrained(str(model), local_files_only=True)


def end_of_sequence_ids(
    model: str | Path | PretrainedConfig, config: PretrainedConfig
) -> tuple[int, ...]:
    """End-of-sequence tokens from generation_config.json, else from the config."""
    value: Any = getattr(config, "eos_token_id", None)
    if not isinstance(model, PretrainedConfig):
        path = Path(model) / "generation_config.json"
        if path.is_file():
            value = json.loads(path.read_text()).get("eos_token_id", value)
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (int(value),)


def build_model(
    source: str | Path | PretrainedConfig,
    config: PretrainedConfig,
    *,
    load_weights: bool,
    dtype: torch.dtype,
    device: torch.device,
) -> PreTrainedModel:
    """Build a causal language model for inference on one device.

    Random numbers of the process are left as they were.

    Raises:
        ValueError: the checkpoint lacks tensors or has tensors of another shape; transformers
            would fill them with random numbers.
    """
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), _quiet():
        if load_weights:
            model = _load(str(source), config, dtype)
        else:
            with device:
                model = AutoModelForCausalLM.from_config(
                    copy.deepcopy(config), dtype=dtype, attn_implementation="sdpa"
                )
    model = model.to(device).eval().requires_grad_(False)
    return model


def _load(folder: str, config: PretrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    model, info = AutoModelForCausalLM.from_pretrained(
        folder,
        config=copy.deepcopy(config),
        dtype=dtype,
        attn_implementation="sdpa",
        local_files_only=True,
        output_loading_info=True,
    )
    for kind in ("missing_keys", "mismatched_keys"):
        if info[kind]:
            raise ValueError(f"{folder}: {kind} in the checkpoint: {sorted(map(str, info[kind]))}")
    return model


def named_weights(model: nn.Module) -> list[tuple[str, Tensor]]:
    """Parameters and saved buffers by name, in module order; shared ones once."""
    seen: set[int] = set()
    unique: list[tuple[str, Tensor]] = []
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            unique.append((name, tensor.detach()))
    return unique


def bounded_length(wanted: int | None, limit: int, of_what: str) -> int:
    """``max_model_len``: what is wanted, by default the limit; ``of_what`` explains the limit.

    Raises:
        ValueError: more is wanted than the model can do, or less than 1.
    """
    if wanted is None:
        return limit
    if not 1 <= wanted <= limit:
        raise ValueError(
            f"max_model_len must be in [1, {limit}] for this model ({of_what}), not {wanted}"
        )
    return wanted


def attention_window(config: Any) -> int | None:
    """The smallest attention window of any layer, None when all layers attend to everything.

    Raises:
        ValueError: a layer is something else than (windowed) softmax attention.
    """
    layer_types = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None)
    if layer_types is None:
        return window if getattr(config, "use_sliding_window", True) else None
    unknown = set(layer_types) - {"full_attention", "sliding_attention"}
    if unknown:
        raise ValueError(
            f"{config.model_type}: the transformers engine decodes attention layers only, this"
            f" model has {sorted(unknown)}; use another rollout engine"
        )
    return window if "sliding_attention" in layer_types else None


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars in the trainer's log."""
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()


def config_manifest(config: PretrainedConfig, dtype: torch.dtype) -> list[TensorMeta]:
    """Name, shape and dtype of every weight of a model, from its config alone; no tied head."""
    meta = torch.device("meta")
    model = build_model(config, config, load_weights=False, dtype=dtype, device=meta)
    return [TensorMeta.of(name, tensor) for name, tensor in named_weights(model)]
