# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Llama 2, 3, 3.1, 3.2 and what shares its architecture (SmolLM2): no biases."""

from __future__ import annotations

from megacurl.models.decoder_map import decoder_weight_map
from megacurl.models.family import Family, HFConfig, read_decoder_shape, refuse
from megacurl.models.shape import ModelShape


def read_shape(config: HFConfig) -> ModelShape:
    """HF config.json -> shape."""
    refuse(config, "attention_bias", False)
    refuse(config, "mlp_bias", False)
    return read_decoder_shape(config, family="llama", qkv_bias=False)


FAMILY = Family(name="llama", read_shape=read_shape, weight_map=decoder_weight_map)
