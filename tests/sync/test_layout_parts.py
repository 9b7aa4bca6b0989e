# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Both sides of the plan by hand: boxes, buckets, the trainer's stages and an engine's shards."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import pytest
import torch

from megacurl.models.decoder_map import decoder_weight_map
from megacurl.models.weight_map import (
    QKV,
    GateUp,
    InputSplit,
    Parameter,
    Piece,
    VocabSplit,
    read_pieces,
)
from megacurl.sync.boxes import Block, Box, Overlap, overlaps, shard_blocks
from megacurl.sync.buckets import cut_into_buckets
from megacurl.sync.engine_layout import (
    EngineLayout,
    EngineQKV,
    EngineVocab,
    engine_parameters,
    engine_problems,
)
from megacurl.sync.trainer_layout import TrainerLayout
from tests.sync.layouts import draw_case, real_case


def test_blocks_of_a_fused_shard() -> None:
    """Rank 1 of 2 with 2 groups of 2 heads: [q2 q3 k1 v1], rows of 4."""
    blocks = shard_blocks(QKV(2, 2, 1), [(4, 4), (2, 4), (2, 4)], 1, 2)
    assert blocks == [
        Block(0, Box(2, 0, 2, 4), (0, 0)),
        Block(1, Box(1, 0, 1, 4), (2, 0)),
        Block(2, Box(1, 0, 1, 4), (3, 0)),
    ]
    assert shard_blocks(InputSplit(6), [(3, 6)], 1, 2) == [Block(0, Box(0, 3, 3, 3), (0, 0))]
    assert shard_blocks(VocabSplit(3, 1), [(3, 2)], 1, 2) == [Block(0, Box(2, 0, 1, 2), (0, 0))]
    assert shard_blocks(VocabSplit(3, 8), [(3, 2)], 1, 2) == []


def test_overlap_of_columns_with_rows() -> None:
    """Sides that cut along different dimensions meet in a rectangle."""
    held, wanted = Block(0, Box(0, 4, 8, 4), (0, 0)), Block(0, Box(6, 0, 2, 8), (1, 0))
    assert overlaps([held], [wanted]) == [Overlap(0, Box(6, 4, 2, 4), (6, 0), (1, 4))]
    assert overlaps([held], [Block(1, Box(6, 0, 2, 8), (1, 0))]) == []
    assert overlaps([held], [Block(0, Box(0, 0, 8, 4), (0, 0))]) == []


@pytest.mark.parametrize("seed", range(20))
def test_buckets_keep_order_size_and_kind(seed: int) -> None:
    r = random.Random(seed)
    items = [(r.randint(1, 12), r.choice("ab")) for _ in range(r.randint(0, 30))]
    buckets = list(cut_into_buckets(items, lambda i: i[0], 10, lambda i: i[1]))
    assert [i for bucket in buckets for i in bucket] == items
    for bucket in buckets:
        assert len(bucket) == 1 or sum(size for size, _ in bucket) <= 10
        assert len({kind for _, kind in bucket}) == 1
    for left, right in itertools.pairwise(buckets):
        full = sum(size for size, _ in left) + right[0][0] > 10
        assert full or left[0][1] != right[0][1]


@pytest.mark.parametrize(("pp", "chunks"), [(1, 1), (2, 1), (4, 1), (2, 2), (4, 3), (2, 6)])
def test_layers_are_where_megatron_puts_them(pp: int, chunks: int) -> None:
    from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

    layout = TrainerLayout(tp=1, dp=1, pp=pp, num_layers=24, chunks=chunks)
    config = SimpleNamespace(
        num_layers=24,
        pipeline_model_parallel_size=pp,
        virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
        pipeline_model_parallel_layout=None,
        num_layers_in_first_pipeline_stage=None,
        num_layers_in_last_pipeline_stage=None,
        account_for_embedding_in_pipeline_split=False,
        account_for_loss_in_pipeline_split=False,
    )
    per_chunk = 24 // pp // chunks
    for stage in range(pp):
        for chunk in range(chunks):
            first = get_transformer_layer_offset(config, chunk if chunks > 1 else None, stage)
            for layer in range(first, first + per_chunk):
                parameter = Parameter("decoder.x", (), GateUp(1), (), layer)
                assert layout.stages(parameter) == (stage,)


@pytest.mark.parametrize(("tied", "pp"), [(True, 1), (True, 3), (False, 1), (False, 3)])
def test_ends_of_the_model_are_on_first_and_last_stage(tied: bool, pp: int) -> None:
    cases = (draw_case(random.Random(seed)) for seed in range(100))
    shape = next(case.shape for case in cases if case.shape.tied == tied)
    layout = TrainerLayout(tp=2, dp=4, pp=pp, num_layers=shape.num_layers)
    ends = [p for p in decoder_weight_map(shape, 1).parameters() if p.layer is None]
    where = {p.megatron: layout.stages(p) for p in ends}
    last = pp - 1
    embedding = (0, last) if tied and pp > 1 else (0,)
    expected = {
        "embedding.word_embeddings.weight": embedding,
        "decoder.final_layernorm.weight": (last,),
    }
    assert where == expected | ({} if tied else {"output_layer.weight": (last,)})
    assert layout.cell_ranks((last, 1)) == [8 * last + 2 * d + 1 for d in range(4)]


def test_key_heads_lie_on_several_ranks_of_a_wide_engine() -> None:
    """4 query heads, 2 key heads, 4 ranks: ranks 0 and 1 hold key head 0."""
    cut = EngineQKV(num_query_groups=2, heads_per_group=2, head_dim=3)
    firsts = [[piece.start for piece in cut.pieces(rank, 4)] for rank in range(4)]
    assert firsts == [[0, 0, 0], [3, 0, 0], [6, 3, 3], [9, 3, 3]]
    assert cut.pieces(1, 2) == [Piece(0, 6, 12), Piece(1, 3, 6), Piece(2, 3, 6)]
    assert EngineVocab(100).pieces(1, 2) == [Piece(0, 64, 100)]
    assert EngineVocab(130).pieces(3, 4) == [Piece(0, 130, 130)]


def test_names_of_an_engine() -> None:
    case = real_case("qwen2.5-7b", 1, 1, 1, 1, 1, 1)
    layer = [p for p in case.parameters() if p.layer == 3]
    fused = [e.names for p in layer for e in engine_parameters(p, EngineLayout(1))]
    prefix = "model.layers.3."
    assert [name.removeprefix(prefix) for (name,) in fused] == [
        "input_layernorm.weight",
        "self_attn.qkv_proj.weight",
        "self_attn.qkv_proj.bias",
        "self_attn.o_proj.weight",
        "post_attention_layernorm.weight",
        "mlp.gate_up_proj.weight",
        "mlp.down_proj.weight",
    ]
    alone = [e.names for p in layer for e in engine_parameters(p, EngineLayout(1, fused=False))]
    assert alone == [(name,) for p in layer for name in p.hf]


def test_what_an_engine_cannot_be_cut_into_is_said() -> None:
    shape = real_case("qwen2.5-7b", 1, 1, 1, 1, 1, 1).shape
    assert list(engine_problems(shape, 4)) == []
    (problem,) = engine_problems(shape, 8)
    assert problem.startswith("--rollout-tensor-parallel-size 8 does not divide the model's 28 att")
    assert problem.endswith("use one of 1, 2, 4")
    (problem,) = engine_problems(shape, 7)
    assert "4 key/value heads (nor is it a multiple of them)" in problem
    assert "intermediate_size 18944" in problem


def test_a_cut_that_engines_do_not_know_is_named() -> None:
    class Diagonal:
        partition_dim = 0

    parameter = Parameter("a.weight", ("a.b",), Diagonal(), ((4, 4),))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no engine layout is known for the cut Diagonal"):
        engine_parameters(parameter, EngineLayout(1))


def test_read_pieces_puts_columns_side_by_side() -> None:
    tensor = torch.arange(12).reshape(2, 6)
    assert torch.equal(read_pieces(InputSplit(6), [tensor], 1, 3), tensor[:, 2:4])
