# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The weight map that Llama-like families share; a family may add entries in its own file."""

from __future__ import annotations

from megacurl.models.shape import ModelShape
from megacurl.models.weight_map import (
    OUTPUT_LAYER,
    QKV,
    Entry,
    GateUp,
    InputSplit,
    Replicated,
    VocabSplit,
    WeightMap,
)

_LAYER = "decoder.layers.{layer}."
_HF = "model.layers.{layer}."


def decoder_entries(shape: ModelShape, vocab_divisible_by: int) -> list[Entry]:
    """Entries of a pre-norm decoder with grouped query attention and a gated MLP."""
    vocab = VocabSplit(shape.vocab_size, vocab_divisible_by)
    qkv = QKV(
        shape.num_query_groups,
        shape.num_attention_heads // shape.num_query_groups,
        shape.head_dim,
    )
    attention, mlp = _LAYER + "self_attention.", _LAYER + "mlp."
    projections = ("q_proj", "k_proj", "v_proj")
    hidden, ffn = shape.hidden_size, shape.ffn_hidden_size
    words = shape.vocab_size, hidden
    query, key = (n * shape.head_dim for n in (shape.num_attention_heads, shape.num_query_groups))
    entries = [
        Entry(
            "embedding.word_embeddings.weight",
            ("model.embed_tokens.weight",),
            vocab,
            (words,),
            # With tied embeddings the last pipeline stage holds a copy under this name.
            aliases=(OUTPUT_LAYER,) if shape.tied else (),
        ),
        Entry(
            _LAYER + "input_layernorm.weight",
            (_HF + "input_layernorm.weight",),
            Replicated(),
            ((hidden,),),
            aliases=(attention + "linear_qkv.layer_norm_weight",),
        ),
        Entry(
            attention + "linear_qkv.weight",
            tuple(f"{_HF}self_attn.{p}.weight" for p in projections),
            qkv,
            ((query, hidden), (key, hidden), (key, hidden)),
        ),
        Entry(
            attention + "linear_proj.weight",
            (_HF + "self_attn.o_proj.weight",),
            InputSplit(query),
            ((hidden, query),),
        ),
        Entry(
            _LAYER + "pre_mlp_layernorm.weight",
            (_HF + "post_attention_layernorm.weight",),
            Replicated(),
            ((hidden,),),
            aliases=(mlp + "linear_fc1.layer_norm_weight",),
        ),
        Entry(
            mlp + "linear_fc1.weight",
            (_HF + "mlp.gate_proj.weight", _HF + "mlp.up_proj.weight"),
            GateUp(ffn),
            ((ffn, hidden), (ffn, hidden)),
        ),
        Entry(
            mlp + "linear_fc2.weight",
            (_HF + "mlp.down_proj.weight",),
            InputSplit(ffn),
            ((hidden, ffn),),
        ),
        Entry("decoder.final_layernorm.weight", ("model.norm.weight",), Replicated(), ((hidden,),)),
    ]
    if shape.qkv_bias:
        biases = tuple(f"{_HF}self_attn.{p}.bias" for p in projections)
        rows = ((query,), (key,), (key,))
        entries.insert(3, Entry(attention + "linear_qkv.bias", biases, qkv, rows))
    if not shape.tied:
        entries.append(Entry(OUTPUT_LAYER, ("lm_head.weight",), vocab, (words,)))
    return entries


def decoder_weight_map(shape: ModelShape, vocab_divisible_by: int) -> WeightMap:
    """The map of a family that needs nothing else."""
    return WeightMap(decoder_entries(shape, vocab_divisible_by), shape.num_layers)
