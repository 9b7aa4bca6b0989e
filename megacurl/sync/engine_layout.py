# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What every rank of a tensor parallel engine holds: vLLM's and SGLang's layout of HF tensors.

Derived from the cuts of the trainer's weight map, so a model family describes itself once. Both
engines fuse q, k and v into ``qkv_proj`` (a rank's query heads, then its key heads, then its value
heads; a key/value head lies on several ranks where there are fewer of them than ranks) and gate and
up into ``gate_up_proj``. They pad the vocabulary to a multiple of 64 and cut it into equal parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from megacurl.models.shape import ModelShape
from megacurl.models.weight_map import (
    QKV,
    Cut,
    GateUp,
    InputSplit,
    Parameter,
    Piece,
    Placement,
    Replicated,
    VocabSplit,
    vocab_piece,
)

VOCAB_PADDING = 64


@dataclass(frozen=True)
class EngineLayout:
    """``replicas`` engines of ``tp`` ranks each. ``fused``: qkv_proj and gate_up_proj are."""

    tp: int
    replicas: int = 1
    fused: bool = True

    @property
    def ranks(self) -> int:
        return self.tp * self.replicas


@dataclass(frozen=True)
class EngineParameter:
    """A parameter of the engine.

    names: it, and parameters that hold the same (the head of a tied model: an engine may keep a
        packed copy of it, which stays old unless it is written too).
    placement: of the HF tensors of the trainer's ``Parameter``.
    """

    names: tuple[str, ...]
    placement: Placement


@dataclass(frozen=True)
class EngineVocab:
    """Rows of an engine's embedding or head."""

    vocab_size: int

    partition_dim: ClassVar[int | None] = 0

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        return vocab_piece(self.vocab_size, _padded_vocab(self.vocab_size) // tp_size, tp_rank)


@dataclass(frozen=True)
class EngineQKV:
    """A rank's query heads above its key heads above its value heads."""

    num_query_groups: int
    heads_per_group: int
    head_dim: int

    partition_dim: ClassVar[int | None] = 0

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        query = self.num_query_groups * self.heads_per_group * self.head_dim // tp_size
        key = max(self.num_query_groups // tp_size, 1) * self.head_dim
        first = tp_rank * self.num_query_groups // tp_size * self.head_dim
        return [
            Piece(0, tp_rank * query, (tp_rank + 1) * query),
            Piece(1, first, first + key),
            Piece(2, first, first + key),
        ]


@dataclass(frozen=True)
class Alone:
    """One HF tensor of a fused placement, as a parameter of its own."""

    fused: Placement
    source: int

    @property
    def partition_dim(self) -> int | None:
        return self.fused.partition_dim

    def pieces(self, tp_rank: int, tp_size: int) -> list[Piece]:
        return [p for p in self.fused.pieces(tp_rank, tp_size) if p.source == self.source]


def engine_parameters(parameter: Parameter, engine: EngineLayout) -> list[EngineParameter]:
    """The engine's parameters that are made of the HF tensors of ``parameter``."""
    placement = _placement(parameter.cut)
    if parameter.tied:
        return [EngineParameter((*parameter.hf, "lm_head.weight"), placement)]
    if len(parameter.hf) == 1:
        return [EngineParameter(parameter.hf, placement)]
    if engine.fused:
        return [EngineParameter((_fused_name(parameter),), placement)]
    return [
        EngineParameter((name,), Alone(placement, source))
        for source, name in enumerate(parameter.hf)
    ]


def engine_problems(shape: ModelShape, tp: int) -> Iterator[str]:
    """Why a model cannot be cut over an engine's ``tp`` ranks, with the sizes that would do."""
    found = _indivisible(shape, tp)
    if found:
        fit = [
            str(n) for n in range(1, shape.num_attention_heads + 1) if not _indivisible(shape, n)
        ]
        yield (
            f"--rollout-tensor-parallel-size {tp} does not divide the model's {', '.join(found)}; "
            f"use one of {', '.join(fit)}"
        )


def _indivisible(shape: ModelShape, tp: int) -> list[str]:
    groups, vocab = shape.num_query_groups, _padded_vocab(shape.vocab_size)
    found = []
    if shape.num_attention_heads % tp:
        found.append(f"{shape.num_attention_heads} attention heads")
    if groups % tp and tp % groups:
        found.append(f"{groups} key/value heads (nor is it a multiple of them)")
    if shape.ffn_hidden_size % tp:
        found.append(f"intermediate_size {shape.ffn_hidden_size}")
    if vocab % tp:
        found.append(f"vocabulary of {vocab} rows (padded)")
    return found


def _padded_vocab(vocab_size: int) -> int:
    return (vocab_size + VOCAB_PADDING - 1) // VOCAB_PADDING * VOCAB_PADDING


def _placement(cut: Cut) -> Placement:
    if isinstance(cut, QKV):
        return EngineQKV(cut.num_query_groups, cut.heads_per_group, cut.head_dim)
    if isinstance(cut, VocabSplit):
        return EngineVocab(cut.vocab_size)
    if isinstance(cut, (Replicated, InputSplit, GateUp)):
        return cut
    raise TypeError(f"no engine layout is known for the cut {type(cut).__name__}")


def _fused_name(parameter: Parameter) -> str:
    first = parameter.hf[0]
    if isinstance(parameter.cut, QKV):
        return first.replace(".q_proj.", ".qkv_proj.")
    return first.replace(".gate_proj.", ".gate_up_proj.")
