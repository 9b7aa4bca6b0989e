# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The two things the decode loop needs of a model: prefill prompts, and one step for all rows.

``HFDecoder`` does both through the model's own forward and works for any decoder-only model with
full attention. ``fused_decoder.py`` replaces the step for the Llama family.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache

from megacurl.rollout.kv_cache import SlotCache


class HFDecoder:
    """Prefill and decode through ``model.forward``.

    Args:
        model: a causal language model in eval mode, all parameters on one device.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model
        parameter = next(model.parameters())
        self.device: torch.device = parameter.device
        self.dtype: torch.dtype = parameter.dtype
        self._kv_shape = self._probe_kv_shape()

    def new_cache(self, num_rows: int) -> SlotCache:
        """An empty cache of ``num_rows`` slots for this model."""
        layers, heads, dim = self._kv_shape
        return SlotCache(layers, heads, dim, num_rows, dtype=self.dtype, device=self.device)

    @torch.inference_mode()
    def prefill(self, ids: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Keys and values of prompts.

        Args:
            ids: int64 [P, L], padded on the *right*: causality keeps padding out of the prompt,
                and its keys and values lie behind the row's length, where they are overwritten.

        Returns:
            For each layer keys and values [P, H, L, D].
        """
        cache = DynamicCache()
        self.model.base_model(input_ids=ids, past_key_values=cache, use_cache=True)
        return [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]

    @torch.inference_mode()
    def decode(self, ids: Tensor, positions: Tensor, cache: SlotCache) -> Tensor:
        """Logits after one token a row; call ``cache.begin_step`` before.

        Args:
            ids: int64 [B], token of each row.
            positions: int64 [B], its position.
            cache: receives the token's keys and values.

        Returns:
            float32 [B, V], safe to overwrite.
        """
        output = self.model(
            input_ids=ids[:, None],
            position_ids=positions[:, None],
            attention_mask=cache.mask,
            past_key_values=_SlotCacheAdapter(cache, self._kv_shape[0]),
            use_cache=True,
        )
        return _owned_float(output.logits[:, -1])

    def _probe_kv_shape(self) -> tuple[int, int, int]:
        """(layers, heads, head_dim) of the model's cache, from a forward of one token."""
        keys, values = self.prefill(torch.zeros((1, 1), dtype=torch.long, device=self.device))
        shapes = {tuple(tensor.shape) for tensor in (*keys, *values)}
        if len(shapes) != 1:
            raise ValueError(
                f"{type(self.model).__name__}: keys and values of all layers must have one shape,"
                f" found {sorted(shapes)}; use another rollout engine for this model"
            )
        _, heads, _, dim = shapes.pop()
        return len(keys), heads, dim


def _owned_float(logits: Tensor) -> Tensor:
    """float32 logits whose memory belongs to the caller."""
    return logits.float().contiguous()


class _SlotLayer(CacheLayerMixin):
    """One layer of a ``SlotCache`` behind the interface transformers' attention talks to."""

    def __init__(self, cache: SlotCache, layer: int) -> None:
        super().__init__()
        self._cache = cache
        self._layer = layer
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        self._cache.append(self._layer, key_states[:, :, 0], value_states[:, :, 0])
        return self._cache.view(self._layer)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        pass

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._cache.length, 0

    def get_seq_length(self) -> int:
        return self._cache.length - 1

    def get_max_length(self) -> int:
        return self._cache.capacity


class _SlotCacheAdapter(Cache):
    def __init__(self, cache: SlotCache, num_layers: int) -> None:
        super().__init__(layers=[_SlotLayer(cache, layer) for layer in range(num_layers)])
