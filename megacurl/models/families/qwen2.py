# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Qwen2 and Qwen2.5: biases on q, k and v, none elsewhere."""

from __future__ import annotations

from megacurl.models.decoder_map import decoder_weight_map
from megacurl.models.family import Family, HFConfig, read_decoder_shape, refuse
from megacurl.models.shape import ModelShape


def read_shape(config: HFConfig) -> ModelShape:
    """HF config.json -> shape."""
    refuse(config, "use_sliding_window", False)
    return read_decoder_shape(config, family="qwen2", qkv_bias=True)


FAMILY = Family(name="qwen2", read_shape=read_shape, weight_map=decoder_weight_map)
