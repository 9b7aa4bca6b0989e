# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A decode step for the Llama family in a dozen kernels a layer.

transformers spends more time between kernels than in them when one token a row is decoded. This
step does the same arithmetic with q/k/v and gate/up as one product each. The packed matrices *are*
the model's parameters (each parameter becomes a view of its pack), so a weight update reaches
both, and no memory is spent twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from megacurl.rollout.decoder import HFDecoder
from megacurl.rollout.kv_cache import SlotCache

FUSED_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
# Types whose frequencies do not change with the sequence length, so that a table is exact.
_FIXED_ROPE_TYPES = ("default", "linear", "llama3", "yarn")
_TABLE_BLOCK = 256


def supports_fused(model: PreTrainedModel) -> bool:
    """Whether the model is built from the parts this file knows."""
    config: Any = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        config.model_type in FUSED_MODEL_TYPES
        and getattr(config, "hidden_act", None) == "silu"
        and rope.get("rope_type", "default") in _FIXED_ROPE_TYPES
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """Parameters of one decoder layer, q/k/v and gate/up packed along the output."""

    input_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: nn.Linear
    post_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: nn.Linear


class FusedDecoder(HFDecoder):
    """``HFDecoder`` with its own decode step.

    Args:
        model: a model for which ``supports_fused`` holds. Its projections are repacked in place;
            moving it to another device or dtype breaks the packs, so build a new decoder then.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        body: Any = model.base_model
        attention = body.layers[0].self_attn
        self._embedding: Tensor = body.embed_tokens.weight
        self._head: Any = model.get_output_embeddings()
        self._final_norm: Tensor = body.norm.weight
        self._eps = float(body.norm.variance_epsilon)
        self._rotary: Any = body.rotary_emb
        self._head_dim = int(attention.head_dim)
        self._scale = float(attention.scaling)
        self._kv_heads = self._kv_shape[1]
        self._query_heads = attention.q_proj.out_features // self._head_dim
        self._layers = [_pack_layer(layer) for layer in body.layers]
        self._cos = torch.empty(0, device=self.device)
        self._sin = torch.empty(0, device=self.device)

    @torch.inference_mode()
    def decode(self, ids: Tensor, positions: Tensor, cache: SlotCache) -> Tensor:
        """See ``HFDecoder.decode``."""
        self._extend_tables(cache.length)
        cos = self._cos.index_select(0, positions)[:, None]
        sin = self._sin.index_select(0, positions)[:, None]
        hidden = F.embedding(ids, self._embedding)
        for index, layer in enumerate(self._layers):
            mixed = self._attention(
                index, layer, self._norm(hidden, layer.input_norm), cos, sin, cache
            )
            hidden = _add_linear(hidden, mixed, layer.out)
            gate, up = F.linear(
                self._norm(hidden, layer.post_norm), layer.gate_up, layer.gate_up_bias
            ).chunk(2, dim=-1)
            hidden = _add_linear(hidden, F.silu(gate).mul_(up), layer.down)
        return self._head(self._norm(hidden, self._final_norm)).float()

    def _attention(
        self, index: int, layer: _Layer, hidden: Tensor, cos: Tensor, sin: Tensor, cache: SlotCache
    ) -> Tensor:
        """Attention before the output projection: [B, hidden] -> [B, Hq * D]."""
        heads = F.linear(hidden, layer.qkv, layer.qkv_bias).view(len(hidden), -1, self._head_dim)
        rotated = self._query_heads + self._kv_heads
        query_key, value = heads[:, :rotated], heads[:, rotated:]
        if layer.q_norm is not None and layer.k_norm is not None:
            query = self._norm(heads[:, : self._query_heads], layer.q_norm)
            key = self._norm(heads[:, self._query_heads : rotated], layer.k_norm)
            query_key = torch.cat((query, key), dim=1)
        # sin's first half is negated, which turns the half roll into the rotation.
        query_key = (query_key * cos).addcmul_(query_key.roll(self._head_dim // 2, -1), sin)
        cache.append(index, query_key[:, self._query_heads :], value)
        return cache.attend(index, query_key[:, : self._query_heads], self._scale)

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(hidden, weight.shape, weight, self._eps)

    def _extend_tables(self, length: int) -> None:
        if length <= len(self._cos):
            return
        size = -(-length // _TABLE_BLOCK) * _TABLE_BLOCK
        probe = torch.empty(0, dtype=self.dtype, device=self.device)
        cos, sin = self._rotary(probe, torch.arange(size, device=self.device)[None])
        self._cos, self._sin = cos[0], sin[0].clone()
        self._sin[:, : self._head_dim // 2].neg_()


def _pack_layer(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    qkv, qkv_bias = _pack(attention.q_proj, attention.k_proj, attention.v_proj)
    gate_up, gate_up_bias = _pack(mlp.gate_proj, mlp.up_proj)
    return _Layer(
        input_norm=layer.input_layernorm.weight,
        qkv=qkv,
        qkv_bias=qkv_bias,
        q_norm=attention.q_norm.weight if hasattr(attention, "q_norm") else None,
        k_norm=attention.k_norm.weight if hasattr(attention, "k_norm") else None,
        out=attention.o_proj,
        post_norm=layer.post_attention_layernorm.weight,
        gate_up=gate_up,
        gate_up_bias=gate_up_bias,
        down=mlp.down_proj,
    )


@torch.no_grad()
def _pack(*linears: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """Concatenate weights (and biases) along the output and make the parameters views of them."""
    weight = _merge([linear.weight for linear in linears])
    if linears[0].bias is None:
        return weight, None
    return weight, _merge([linear.bias for linear in linears])


def _merge(parameters: list[Tensor]) -> Tensor:
    packed = torch.cat([parameter.data for parameter in parameters])
    parts = packed.split([len(parameter) for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data = part
    return packed


def _add_linear(residual: Tensor, inputs: Tensor, linear: nn.Linear) -> Tensor:
    """residual + linear(inputs), in one kernel where there is no bias."""
    if linear.bias is None:
        return torch.addmm(residual, inputs, linear.weight.t())
    return residual + F.linear(inputs, linear.weight, linear.bias)
