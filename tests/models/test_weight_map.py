# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The weight map by hand: where rows go, both ways, under every name."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from megacurl.config.errors import ConfigError
from megacurl.models.family import family_names, get_family
from megacurl.models.weight_map import QKV, Cut, GateUp, InputSplit, Replicated, VocabSplit

CONFIG = {
    "hidden_act": "silu",
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 7,
    "max_position_embeddings": 32,
    "tie_word_embeddings": False,
}


def rows(start: int, count: int, width: int = 2) -> torch.Tensor:
    return torch.arange(start, start + count)[:, None].expand(count, width).contiguous()


def test_qkv_goes_group_by_group() -> None:
    """4 heads, 2 groups, head size 1: [q0 q1 k0 v0 | q2 q3 k1 v1]."""
    cut = QKV(num_query_groups=2, heads_per_group=2, head_dim=1)
    q, k, v = rows(0, 4), rows(10, 2), rows(20, 2)
    shards = [cut.to_shard([q, k, v], rank, 2) for rank in range(2)]
    assert shards[0][:, 0].tolist() == [0, 1, 10, 20]
    assert shards[1][:, 0].tolist() == [2, 3, 11, 21]
    assert all(torch.equal(a, b) for a, b in zip(cut.to_hf(shards), (q, k, v), strict=True))


def test_gate_and_up_halves_stay_together_on_a_rank() -> None:
    cut = GateUp(ffn_hidden_size=4)
    gate, up = rows(0, 4), rows(10, 4)
    shards = [cut.to_shard([gate, up], rank, 2) for rank in range(2)]
    assert shards[0][:, 0].tolist() == [0, 1, 10, 11]
    assert shards[1][:, 0].tolist() == [2, 3, 12, 13]
    assert [t[:, 0].tolist() for t in cut.to_hf(shards)] == [[0, 1, 2, 3], [10, 11, 12, 13]]


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_vocabulary_is_padded_once_and_padding_is_not_exported(tp: int) -> None:
    cut = VocabSplit(vocab_size=7, padded_per=2)
    shards = [cut.to_shard([rows(1, 7)], rank, tp) for rank in range(tp)]
    assert sum(len(s) for s in shards) == 8  # not 8 x tp
    assert torch.cat(shards)[7:].abs().sum() == 0
    (back,) = cut.to_hf(shards)
    assert torch.equal(back, rows(1, 7))


@pytest.mark.parametrize("cut", [Replicated(), InputSplit(columns=4)])
def test_whole_and_row_parallel(cut: Cut) -> None:
    tensor = torch.randn(3, 4)
    shards = [cut.to_shard([tensor], rank, 2) for rank in range(2)]
    assert torch.equal(cut.to_hf(shards)[0], tensor)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 12])
def test_ranks_share_the_rows_of_qkv_also_inside_a_group(ranks: int) -> None:
    """Megatron cuts linear_qkv evenly: with 3 groups of 4 heads on 12 ranks, a head a rank."""
    cut = QKV(num_query_groups=3, heads_per_group=2, head_dim=2)
    q, k, v = rows(0, 12), rows(100, 6), rows(200, 6)
    fused = cut.to_shard([q, k, v], 0, 1)
    shards = [cut.to_shard([q, k, v], rank, ranks) for rank in range(ranks)]
    assert all(torch.equal(a, b) for a, b in zip(shards, fused.chunk(ranks), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(cut.to_hf(shards), (q, k, v), strict=True))


@pytest.mark.parametrize(
    ("cut", "shapes"),
    [
        (Replicated(), [(5,)]),
        (InputSplit(columns=12), [(3, 12)]),
        (VocabSplit(vocab_size=7, padded_per=3), [(7, 2)]),
        (GateUp(ffn_hidden_size=12), [(12, 2), (12, 2)]),
        (QKV(num_query_groups=4, heads_per_group=2, head_dim=3), [(24, 2), (12, 2), (12, 2)]),
        (QKV(num_query_groups=2, heads_per_group=4, head_dim=2), [(16,), (4,), (4,)]),
    ],
)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_pieces_say_what_is_in_a_shard(cut: Cut, shapes: list[tuple[int, ...]], ranks: int) -> None:
    """Each piece, copied to its place in an empty shard, gives the shard; the rest is padding."""
    sources = [torch.rand(shape) + 1 for shape in shapes]
    for rank in range(ranks):
        shard = cut.to_shard(sources, rank, ranks)
        built, offset, dim = torch.zeros_like(shard), 0, cut.partition_dim or 0
        for source, start, stop in cut.pieces(rank, ranks):
            end = sources[source].shape[dim] if stop is None else stop
            part = sources[source].narrow(dim, start, end - start)
            built.narrow(dim, offset, end - start).copy_(part)
            offset += end - start
        assert torch.equal(built, shard)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", ["qwen2", "llama"])
def test_shapes_are_those_of_transformers(name: str, tied: bool) -> None:
    family = get_family(name)
    config = {**CONFIG, "tie_word_embeddings": tied, "head_dim": 6 if name == "llama" else 2}
    parameters = family.weight_map(family.read_shape(config), 1).parameters()
    ours = {n: s for p in parameters for n, s in zip(p.hf, p.shapes, strict=True)}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **config))
    assert ours == {n: tuple(p.shape) for n, p in model.named_parameters()}


@pytest.mark.parametrize("name", ["qwen2", "llama"])
def test_transformer_engine_names_lead_to_the_same_entries(name: str) -> None:
    family = get_family(name)
    weights = family.weight_map(family.read_shape(CONFIG), 1)
    prefix = "decoder.layers.0."
    for local, fused in (
        ("input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight"),
        ("pre_mlp_layernorm.weight", "mlp.linear_fc1.layer_norm_weight"),
    ):
        assert weights.find(prefix + local, 1) == weights.find(prefix + fused, 1)
    found = weights.find(prefix + "self_attention.linear_qkv.layer_norm_weight", first_layer=1)
    assert found.hf == ("model.layers.1.input_layernorm.weight",)
    assert found.megatron == "decoder.layers.1.input_layernorm.weight"


def test_every_hf_parameter_is_covered_once() -> None:
    family = get_family("qwen2")
    weights = family.weight_map(family.read_shape(CONFIG), 1)
    names = [hf for parameter in weights.parameters() for hf in parameter.hf]
    assert len(names) == len(set(names)) == 3 + 2 * 12
    with pytest.raises(KeyError, match=r"decoder\.layers\.0\.mlp\.bias"):
        weights.find("decoder.layers.0.mlp.bias")


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window=True"),
        ("llama", {"attention_bias": True}, "attention_bias=True"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act='gelu'"),
        ("qwen2", {"hidden_size": 0}, "hidden_size is 0, must be a positive integer"),
        ("llama", {"num_key_value_heads": 3}, "is no multiple of num_key_value_heads 3"),
        ("llama", {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope scaling"),
    ],
)
def test_what_a_family_cannot_train_is_refused(
    family: str, change: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        get_family(family).read_shape({**CONFIG, **change})


def test_unknown_family_names_the_nearest() -> None:
    assert family_names() == ["llama", "qwen2"]
    with pytest.raises(ConfigError, match="did you mean 'qwen2'"):
        get_family("qwen_2")
