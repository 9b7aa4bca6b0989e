# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The map between Hugging Face parameters and the shards of a Megatron model, both ways.

A family lists its parameters once. Each entry names one Megatron parameter, the HF parameters it is
made of, and a ``Cut``: how the pieces merge and how the result is split over tensor parallel ranks.
The same entry loads (HF -> shard, reading only the needed rows), exports and feeds engines
(shards -> HF), and tells the sync plan which rank holds what without any tensor. Names of the local
and the Transformer Engine spec lead to the same entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor


class Piece(NamedTuple):
    """Part ``start:stop`` of the entry's HF tensor number ``source``; ``stop`` None: to its end."""

    source: int
    start: int
    stop: int | None


class Placement(Protocol):
    """What each tensor parallel rank holds of some HF tensors."""

    @property
    def partition_dim(self) -> int | None:
        """Dimension that the tensor parallel ranks share; None if each holds the whole."""

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        """The rank's shard: these pieces behind one another along ``partition_dim``, then padding.

        A piece may be empty.
        """


class Cut(Placement, Protocol):
    """How HF tensors become a tensor parallel shard, and how the shards become HF tensors again.

    ``sources`` may be tensors or safetensors slices: whatever ``x[a:b]`` and ``x[:, a:b]`` read.
    """

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        """The rank's part."""

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        """The HF tensors, from the parts of all ranks."""


def read_pieces(placement: Placement, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
    """The rank's shard without padding, put together from its pieces."""
    columns = placement.partition_dim == 1
    parts: list[Tensor] = [
        sources[source][:, start:stop] if columns else sources[source][start:stop]
        for source, start, stop in placement.pieces(tp_rank, tp_size)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=int(columns))


@dataclass(frozen=True)
class Replicated:
    """Every rank holds the whole tensor."""

    partition_dim: ClassVar[int | None] = None

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        return [Piece(0, 0, None)]

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        return read_pieces(self, sources, tp_rank, tp_size)

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        return [shards[0]]


@dataclass(frozen=True)
class InputSplit:
    """A row-parallel matrix [out, in]: ranks share the input dimension."""

    columns: int

    partition_dim: ClassVar[int | None] = 1

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        width = self.columns // tp_size
        return [Piece(0, tp_rank * width, (tp_rank + 1) * width)]

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        return read_pieces(self, sources, tp_rank, tp_size)

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        return [torch.cat(list(shards), dim=1)]


@dataclass(frozen=True)
class VocabSplit:
    """Embedding or output rows; padded behind the vocabulary so that all ranks hold as many."""

    vocab_size: int
    padded_per: int

    partition_dim: ClassVar[int | None] = 0

    def rows(self, tp_size: int) -> int:
        """Rows of every rank, padding included."""
        multiple = self.padded_per * tp_size
        return (self.vocab_size + multiple - 1) // multiple * self.padded_per

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        return vocab_piece(self.vocab_size, self.rows(tp_size), tp_rank)

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        real = read_pieces(self, sources, tp_rank, tp_size)
        padding = real.new_zeros(self.rows(tp_size) - real.shape[0], *real.shape[1:])
        return torch.cat([real, padding])

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        return [torch.cat(list(shards))[: self.vocab_size]]


def vocab_piece(vocab_size: int, rows: int, tp_rank: int) -> list[Piece]:
    """The words of a rank that holds ``rows`` rows of a padded vocabulary, possibly none."""
    first = tp_rank * rows
    return [Piece(0, min(first, vocab_size), min(first + rows, vocab_size))]


@dataclass(frozen=True)
class GateUp:
    """linear_fc1 of a gated MLP: every rank holds its gate rows above its up rows."""

    ffn_hidden_size: int

    partition_dim: ClassVar[int | None] = 0

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        rows = self.ffn_hidden_size // tp_size
        return [Piece(half, tp_rank * rows, (tp_rank + 1) * rows) for half in (0, 1)]

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        return read_pieces(self, sources, tp_rank, tp_size)

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        halves = [shard.chunk(2) for shard in shards]
        return [torch.cat([half[i] for half in halves]) for i in (0, 1)]


@dataclass(frozen=True)
class QKV:
    """linear_qkv: for every query group its query heads, then its key, then its value head.

    Works for weights [rows, h] and biases [rows]. Ranks share the rows evenly, so one of more ranks
    than groups holds a part of a group, as in Megatron.
    """

    num_query_groups: int
    heads_per_group: int
    head_dim: int

    partition_dim: ClassVar[int | None] = 0

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        heads = (self.heads_per_group, 1, 1)
        group_rows = sum(heads) * self.head_dim
        share = self.num_query_groups * group_rows // tp_size
        first, last = tp_rank * share, (tp_rank + 1) * share
        found = []
        for group in range(first // group_rows, (last - 1) // group_rows + 1):
            row = group * group_rows
            for source, count in enumerate(heads):
                rows = count * self.head_dim
                start, stop = max(first - row, 0), min(last - row, rows)
                if start < stop:
                    found.append(Piece(source, group * rows + start, group * rows + stop))
                row += rows
        return found

    def to_shard(self, sources: Sequence[Any], tp_rank: int, tp_size: int) -> Tensor:
        return read_pieces(self, sources, tp_rank, tp_size)

    def to_hf(self, shards: Sequence[Tensor]) -> list[Tensor]:
        sizes = [n * self.head_dim for n in (self.heads_per_group, 1, 1)]
        whole = torch.cat(list(shards))
        grouped = whole.reshape(self.num_query_groups, sum(sizes), *whole.shape[1:])
        return [p.reshape(-1, *whole.shape[1:]) for p in grouped.split(sizes, dim=1)]


Shape = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """``megatron`` and ``hf`` may contain ``{layer}``, the layer's number in the whole model.

    ``shapes``: of each HF tensor. ``aliases``: the parameter's names under another layer spec.
    """

    megatron: str
    hf: tuple[str, ...]
    cut: Cut
    shapes: tuple[Shape, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """One Megatron parameter of the whole model, resolved: its HF tensors and its cut.

    ``layer``: the layer it belongs to; None in front of and behind the layers. ``tied``: the
    embedding that is the output layer too, so that the last stage holds a copy.
    """

    megatron: str
    hf: tuple[str, ...]
    cut: Cut
    shapes: tuple[Shape, ...]
    layer: int | None = None
    tied: bool = False


OUTPUT_LAYER = "output_layer.weight"

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
            entry.shapes,
            layer if "{layer}" in entry.megatron else None,
            OUTPUT_LAYER in entry.aliases,
        )
