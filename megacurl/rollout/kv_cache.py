# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Keys and values of the rows in flight, in slots that rows of different lengths can share.

Row r's token at position j lives at [r, :, j]: nothing is padded on the left, so a new row can
enter a slot at any time, and a finished one is replaced by moving a single row.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 16
_FIRST_CAPACITY = 512
_BMM_MAX_LENGTH = 192  # measured on a CPU: above it the fused attention kernel is as fast


class SlotCache:
    """Key and value slots of all layers.

    Args:
        num_layers: decoder layers.
        num_kv_heads: key/value heads of a layer.
        head_dim: width of a head, the same for keys and values.
        num_rows: slots.
        dtype: dtype of the model's activations.
        device: device of the model.
    """

    def __init__(
        self,
        num_layers: int,
        num_kv_heads: int,
        head_dim: int,
        num_rows: int,
        *,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self._shape = (num_layers, num_rows, num_kv_heads, 0, head_dim)
        self._device = device
        self._keys = torch.empty(self._shape, dtype=dtype, device=device)
        self._values = torch.empty_like(self._keys)
        self._rows = torch.arange(num_rows, device=device)
        self._use_bmm = False
        self._active = 0
        self._length = 0

    @property
    def capacity(self) -> int:
        """Positions a slot has room for."""
        return self._keys.shape[3]

    @property
    def length(self) -> int:
        """Positions the present step attends to."""
        return self._length

    def reserve(self, length: int, limit: int) -> None:
        """Make room for ``length`` positions; grows by doubling, but not past ``limit``."""
        if length <= self.capacity:
            return
        roomy = max(length, min(limit, max(_FIRST_CAPACITY, 2 * self.capacity)))
        grown = list(self._shape)
        grown[3] = -(-roomy // _BLOCK) * _BLOCK
        for name in ("_keys", "_values"):
            old: Tensor = getattr(self, name)
            # Zeros, not empty: a masked position still enters the sum as 0 x value, so it
            # must be finite.
            new = torch.zeros(grown, dtype=old.dtype, device=old.device)
            new[:, :, :, : old.shape[3]] = old
            setattr(self, name, new)

    def write(
        self, slots: Tensor, source: Tensor, keys: list[Tensor], values: list[Tensor]
    ) -> None:
        """Copy prefilled prompts into slots; one prompt may go to many.

        Args:
            slots: int64 [R], slots to fill.
            source: int64 [R], the prompt of each slot.
            keys: for each layer [P, H, L, D].
            values: like ``keys``.
        """
        length = keys[0].shape[2]
        for layer, (key, value) in enumerate(zip(keys, values, strict=True)):
            self._keys[layer, slots, :, :length] = key[source]
            self._values[layer, slots, :, :length] = value[source]

    def move(self, target: Tensor, origin: Tensor, length: int) -> None:
        """Copy the first ``length`` positions of slots ``origin`` to ``target``, int64 [M] each."""
        self._keys[:, target, :, :length] = self._keys[:, origin, :, :length]
        self._values[:, target, :, :length] = self._values[:, origin, :, :length]

    def clear(self, slots: Tensor) -> None:
        """Zero slots that may hold non-finite numbers."""
        self._keys[:, slots] = 0
        self._values[:, slots] = 0

    def begin_step(self, positions: Tensor, length: int) -> None:
        """Prepare a decode step of the first B rows.

        Args:
            positions: int64 [B], where each row's new token goes.
            length: largest position + 1.
        """
        self._active, self._length = len(positions), length
        heads, capacity = self._keys.shape[2], self.capacity
        first = self._rows[: self._active, None] * heads + torch.arange(heads, device=self._device)
        self._write_index = (first * capacity + positions[:, None]).view(-1)
        hidden = torch.arange(length, device=self._device) > positions[:, None]
        self.mask = torch.zeros(hidden.shape, dtype=self._keys.dtype, device=self._device)
        self.mask = self.mask.masked_fill_(hidden, -torch.inf)[:, None, None, :]
        self._use_bmm = self._device.type == "cpu" and length <= _BMM_MAX_LENGTH
        self._bias: Tensor | None = None

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Store the new token's keys and values, each [B, H, D]."""
        dim = keys.shape[-1]
        self._keys[layer].view(-1, dim).index_copy_(0, self._write_index, keys.reshape(-1, dim))
        self._values[layer].view(-1, dim).index_copy_(0, self._write_index, values.reshape(-1, dim))

    def view(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the step's rows, [B, H, length, D] each; use them with ``mask``."""
        return (
            self._keys[layer, : self._active, :, : self._length],
            self._values[layer, : self._active, :, : self._length],
        )

    def attend(self, layer: int, query: Tensor, scale: float) -> Tensor:
        """Attention of one query a row over its own positions.

        Queries that share a key head (GQA) become rows of one small product, so keys and values
        are never repeated.

        Args:
            query: [B, Hq, D]; query heads of one key head are adjacent.
            scale: factor of the scores.

        Returns:
            [B, Hq * D].
        """
        batch, query_heads, dim = query.shape
        heads, capacity = self._keys.shape[2], self.capacity
        group = query_heads // heads
        if self._use_bmm:
            bias = self._step_bias(heads, group)
            rows = batch * heads
            strides = (capacity * dim, dim, 1)
            size = (rows, self._length, dim)
            keys = self._keys[layer].as_strided(size, strides)
            values = self._values[layer].as_strided(size, strides)
            scores = torch.baddbmm(
                bias, query.reshape(rows, group, dim), keys.transpose(1, 2), alpha=scale
            )
            return torch.bmm(scores.softmax(-1), values).view(batch, -1)
        keys, values = self.view(layer)
        grouped = query.reshape(batch, heads, group, dim)
        mask = self.mask.expand(batch, 1, group, self._length)
        mixed = F.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask, scale=scale)
        return mixed.reshape(batch, -1)

    def _step_bias(self, heads: int, group: int) -> Tensor:
        """``mask`` as [B * heads, group, length], made once a step."""
        if self._bias is None:
            shape = (self._active, heads, group, self._length)
            self._bias = self.mask.expand(shape).reshape(-1, group, self._length)
        return self._bias
