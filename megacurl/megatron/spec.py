# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which modules a transformer layer is made of: Megatron's local ones or Transformer Engine's."""

from __future__ import annotations

import importlib.util
from typing import Any, Literal

from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.transformer_block import (
    TransformerBlockSubmodules,
    get_num_layers_to_build,
)

from megacurl.megatron import cpu
from megacurl.megatron.attention import PackedAttention
from megacurl.megatron.norm import RMSNorm

TransformerImpl = Literal["local", "transformer_engine"]


def choose_transformer_impl(requested: str) -> TransformerImpl:
    """Resolve ``auto``; asking for Transformer Engine where it cannot run is an error."""
    available = cpu.has_gpu() and importlib.util.find_spec("transformer_engine") is not None
    if requested == "auto":
        return "transformer_engine" if available else "local"
    if requested == "transformer_engine" and not available:
        raise ValueError(
            "--transformer-impl transformer_engine needs a CUDA GPU and the package "
            "transformer_engine (pip install 'megacurl[te]'); use --transformer-impl local"
        )
    return "local" if requested == "local" else "transformer_engine"


def block_spec(config: TransformerConfig, impl: TransformerImpl, vp_stage: int | None) -> Any:
    """The spec of the layers and final norm of this pipeline stage, or of its virtual stage."""
    if impl == "transformer_engine":
        from megatron.core.models.gpt.gpt_layer_specs import (
            get_gpt_layer_with_transformer_engine_spec,
        )

        return get_gpt_layer_with_transformer_engine_spec()
    layer = get_gpt_layer_local_spec(normalization="RMSNorm")
    layer.submodules.input_layernorm = RMSNorm
    layer.submodules.pre_mlp_layernorm = RMSNorm
    layer.submodules.self_attention.submodules.core_attention = PackedAttention
    layers = [layer] * get_num_layers_to_build(config, vp_stage)
    return TransformerBlockSubmodules(layer_specs=layers, layer_norm=RMSNorm)
