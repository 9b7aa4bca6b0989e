# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Layouts to plan for: drawn at random, and those of real models; engine shards cut by hand."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from megacurl.models.decoder_map import decoder_weight_map
from megacurl.models.family import load_shape
from megacurl.models.shape import ModelShape
from megacurl.models.weight_map import Parameter
from megacurl.sync.engine_layout import EngineLayout, engine_problems
from megacurl.sync.plan import SyncPlan, plan_sync
from megacurl.sync.trainer_layout import TrainerLayout

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "models"
REAL_MODELS = {
    "qwen2.5-7b": ROOT / "examples" / "models" / "qwen2.5-7b",
    "qwen2.5-32b": FIXTURES / "qwen2.5-32b",
    "qwen2.5-72b": FIXTURES / "qwen2.5-72b",
    "llama-3-70b": FIXTURES / "llama-3-70b",
}


@dataclass(frozen=True)
class Case:
    """A model, where it is, where it shall go, and in how large buckets."""

    shape: ModelShape
    vocab_divisible_by: int
    trainer: TrainerLayout
    engine: EngineLayout
    bucket_elements: int

    def parameters(self) -> list[Parameter]:
        return decoder_weight_map(self.shape, self.vocab_divisible_by).parameters()

    def plan(self) -> SyncPlan:
        return plan_sync(
            self.parameters(), self.trainer, self.engine, bucket_elements=self.bucket_elements
        )


def draw_case(r: random.Random) -> Case:
    """A small model of any sizes that some trainer and some engine layout divide."""
    tp, engine_tp = r.randint(1, 8), r.randint(1, 8)
    pp, chunks = r.randint(1, 4), r.choice((1, 1, 2))
    heads = math.lcm(tp, engine_tp) * r.choice((1, 1, 2))
    head_dim = r.choice((1, 2, 4))
    groups = r.choice([n for n in range(1, heads + 1) if _groups_fit(n, heads, tp, engine_tp)])
    shape = ModelShape(
        family="drawn",
        num_layers=pp * chunks * r.randint(1, 2),
        hidden_size=r.randint(3, 20),
        ffn_hidden_size=math.lcm(tp, engine_tp) * r.randint(1, 3),
        num_attention_heads=heads,
        num_query_groups=groups,
        head_dim=head_dim,
        vocab_size=_vocab(r, engine_tp),
        max_position_embeddings=32,
        rope_theta=10000.0,
        rope_scaling=None,
        norm_eps=1e-6,
        qkv_bias=r.random() < 0.5,
        tied=r.random() < 0.5,
    )
    # Megatron cuts the rows of linear_qkv evenly, also inside a group.
    if (heads + 2 * groups) * head_dim % tp or any(engine_problems(shape, engine_tp)):
        return draw_case(r)
    return Case(
        shape,
        vocab_divisible_by=r.choice((1, 8, 128)),
        trainer=TrainerLayout(tp, r.randint(1, 6), pp, shape.num_layers, chunks),
        engine=EngineLayout(engine_tp, r.randint(1, 4), fused=r.random() < 0.8),
        bucket_elements=r.choice((1, 200, 2000, 10**9)),
    )


def _groups_fit(groups: int, heads: int, tp: int, engine_tp: int) -> bool:
    fits = (groups % n == 0 or n % groups == 0 for n in (tp, engine_tp))
    return heads % groups == 0 and all(fits)


def _vocab(r: random.Random, engine_tp: int) -> int:
    """Odd or even, at most a few hundred, its padded size a multiple of the engine's ranks."""
    padded = math.lcm(64, engine_tp) * r.choice((1, 1, 2) if engine_tp < 5 else (1,))
    return padded - r.randint(0, 63)


def real_case(
    model: str, tp: int, dp: int, pp: int, chunks: int, engine_tp: int, engines: int
) -> Case:
    """A real model in bfloat16 with buckets of 256 MiB."""
    _, shape = load_shape(REAL_MODELS[model])
    trainer = TrainerLayout(tp, dp, pp, shape.num_layers, chunks)
    return Case(shape, 128, trainer, EngineLayout(engine_tp, engines), (256 << 20) // 2)


def cell_of(trainer: TrainerLayout, rank: int) -> tuple[int, int]:
    """Pipeline stage and tensor parallel rank of a trainer rank, as Megatron numbers them."""
    stage, within = divmod(rank, trainer.tp * trainer.dp)
    return stage, within % trainer.tp


def numbered_tensors(parameters: list[Parameter]) -> dict[str, Tensor]:
    """HF tensors in which every element of the model has a number of its own, from 1 on."""
    tensors, first = {}, 1
    for parameter in parameters:
        for name, shape in zip(parameter.hf, parameter.shapes, strict=True):
            count = math.prod(shape)
            tensors[name] = torch.arange(first, first + count).reshape(shape)
            first += count
    return tensors


def trainer_shards(case: Case, hf: dict[str, Tensor]) -> dict[tuple[int, int, str], Tensor]:
    """(stage, tensor rank, Megatron name) -> shard, cut as the trainer loads them."""
    return {
        (stage, rank, p.megatron): p.cut.to_shard([hf[n] for n in p.hf], rank, case.trainer.tp)
        for p in case.parameters()
        for stage in case.trainer.stages(p)
        for rank in range(case.trainer.tp)
    }


def engine_shards(case: Case, hf: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """The parameters of every rank of an engine, cut from HF tensors as vLLM's loaders do it."""
    return [_engine_rank(case, hf, rank) for rank in range(case.engine.tp)]


def _engine_rank(case: Case, hf: dict[str, Tensor], rank: int) -> dict[str, Tensor]:
    tp, groups = case.engine.tp, case.shape.num_query_groups
    shard: dict[str, Tensor] = {}
    for name, tensor in hf.items():
        if "norm" in name:
            shard[name] = tensor
        elif "o_proj" in name or "down_proj" in name:
            shard[name] = tensor.chunk(tp, dim=1)[rank]
        elif "k_proj" in name or "v_proj" in name:
            heads = min(groups, tp)
            shard[name] = tensor.chunk(heads)[rank * heads // tp]
        elif "embed_tokens" in name or "lm_head" in name:
            padding = tensor.new_zeros(-len(tensor) % 64, tensor.shape[1])
            shard[name] = torch.cat([tensor, padding]).chunk(tp)[rank]
        else:
            shard[name] = tensor.chunk(tp)[rank]
    if case.shape.tied:
        shard["lm_head.weight"] = shard["model.embed_tokens.weight"]
    return _fuse(shard) if case.engine.fused else shard


def _fuse(shard: dict[str, Tensor]) -> dict[str, Tensor]:
    """q, k and v, gate and up behind one another, in the order in which they are listed."""
    fused: dict[str, list[Tensor]] = {}
    for name, tensor in shard.items():
        for part in ("q_proj", "k_proj", "v_proj"):
            name = name.replace(f".{part}.", ".qkv_proj.")
        for part in ("gate_proj", "up_proj"):
            name = name.replace(f".{part}.", ".gate_up_proj.")
        fused.setdefault(name, []).append(tensor)
    return {name: torch.cat(parts) for name, parts in fused.items()}
