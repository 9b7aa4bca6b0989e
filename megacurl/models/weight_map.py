# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The map between Hugging Face parameters and the shards of a Megatron model, both ways.

A family lists its parameters once. Each entry names one Megatron parameter, the HF parameters it is
made of, and a ``Cut``: how the pieces merge and how the result is split over tensor parallel ranks.
The same entry loads (HF -> shard, reading only the needed rows), exports and feeds engines
(shards -> HF). Names of the local and the Transformer Engine spec lead to the same entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor


class Cut(Protocol):
    """How HF tensors become a tensor parallel shard, and how the shards become HF tensors again.

    ``sources`` may be tensors or safetensors slices: whatever ``x[a:b]`` and ``x[:, a:b]`` read.
    """

    @property
    def partition_dim(self) -> int | None:
        """Dimension that the tensor parallel ranks share; None if each holds the whole."""

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        """The rank's part."""

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        """The HF tensors, from the parts of all ranks."""


@dataclass(frozen=True)
class Replicated:
    """Every rank holds the whole tensor."""

    partition_dim: ClassVar[int | None] = None

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        whole: Tensor = sources[0][:]
        return whole

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        return [shards[0]]


@dataclass(frozen=True)
class InputSplit:
    """A row-parallel matrix [out, in]: ranks share the input dimension."""

    columns: int

    partition_dim: ClassVar[int | None] = 1

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        width = self.columns // tp_size
        shard: Tensor = sources[0][:, tp_rank * width : (tp_rank + 1) * width]
        return shard

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        return [torch.cat(list(shards), dim=1)]


@dataclass(frozen=True)
class VocabSplit:
    """Embedding or output rows; padded behind the vocabulary so that all ranks hold as many."""

    vocab_size: int
    padded_per: int

    partition_dim: ClassVar[int | None] = 0

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        multiple = self.padded_per * tp_size
        rows = (self.vocab_size + multiple - 1) // multiple * multiple // tp_size
        first = tp_rank * rows
        real: Tensor = sources[0][min(first, self.vocab_size) : min(first + rows, self.vocab_size)]
        padding = real.new_zeros(rows - real.shape[0], *real.shape[1:])
        return torch.cat([real, padding])

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        return [torch.cat(list(shards))[: self.vocab_size]]


@dataclass(frozen=True)
class GateUp:
    """linear_fc1 of a gated MLP: every rank holds its gate rows above its up rows."""

    ffn_hidden_size: int

    partition_dim: ClassVar[int | None] = 0

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        rows = self.ffn_hidden_size // tp_size
        return torch.cat([s[tp_rank * rows : (tp_rank + 1) * rows] for s in sources])

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        halves = [shard.chunk(2) for shard in shards]
        return [torch.cat([half[i] for half in halves]) for i in (0, 1)]


@dataclass(frozen=True)
class QKV:
    """linear_qkv: for every query group its query heads, then its key, then its value head.

    Works for weights [rows, h] and biases [rows]; a rank holds whole groups.
    """

    num_query_groups: int
    heads_per_group: int
    head_dim: int

    partition_dim: ClassVar[int | None] = 0

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        groups = self.num_query_groups // tp_size
        parts = []
        for source, heads in zip(sources, (self.heads_per_group, 1, 1), strict=True):
            rows = groups * heads * self.head_dim
            part = source[tp_rank * rows : (tp_rank + 1) * rows]
            parts.append(part.reshape(groups, heads * self.head_dim, *part.shape[1:]))
        merged = torch.cat(parts, dim=1)
        return merged.reshape(-1, *merged.shape[2:])

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        sizes = [n * self.head_dim for n in (self.heads_per_group, 1, 1)]
        whole = torch.cat(list(shards))
        grouped = whole.reshape(self.num_query_groups, sum(sizes), *whole.shape[1:])
        return [p.reshape(-1, *whole.shape[1:]) for p in grouped.split(sizes, dim=1)]


@dataclass(frozen=True)
class Entry:
    """``megatron`` and ``hf`` may contain ``{layer}``, the layer's number in the whole model.

    ``aliases``: the parameter's names under another layer spec.
    """

    megatron: str
    hf: tuple[str, ...]
    cut: Cut
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One Megatron parameter of the whole model, resolved: its HF names and its cut."""

    megatron: str
    hf: tuple[str, ...]
    cut: Cut


_LAYER = re.compile(r"(?<=\.layers\.)\d+(?=\.)")


class WeightMap:
    """All entries of a model."""

    def __init__(self, entries: Sequence[Entry], num_layers: int) -> None:
        self.num_layers = num_layers
        self._entries = {name: e for e in entries for name in (e.megatron, *e.aliases)}
        self._ordered = list(entries)

    def find(self, megatron_name: str, first_layer: int = 0) -> Parameter:
        """Resolve a parameter of a rank's model; ``first_layer`` is the stage's layer offset.

        Raises:
            KeyError: naming the parameter, if no entry covers it.
        """
        match = _LAYER.search(megatron_name)
        layer = int(match.group()) + first_layer if match else 0
        pattern = _LAYER.sub("{layer}", megatron_name)
        if pattern not in self._entries:
            raise KeyError(f"no weight map entry for the Megatron parameter {megatron_name!r}")
        entry = self._entries[pattern]
        return self._resolve(entry, layer)

    def parameters(self) -> list[Parameter]:
        """Every parameter of the whole model: embedding, layers in order, final norm, output."""
        resolved = []
        layered = [e for e in self._ordered if "{layer}" in e.megatron]
        before = self._ordered[: self._ordered.index(layered[0])] if layered else []
        after = [e for e in self._ordered if e not in layered and e not in before]
        resolved += [self._resolve(e, 0) for e in before]
        for layer in range(self.num_layers):
            resolved += [self._resolve(e, layer) for e in layered]
        return resolved + [self._resolve(e, 0) for e in after]

    @staticmethod
    def _resolve(entry: Entry, layer: int) -> Parameter:
        return Parameter(
            entry.megatron.format(layer=layer),
            tuple(name.format(layer=layer) for name in entry.hf),
            entry.cut,
        )
