# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""vLLM's own layers, on every rank of an engine, load what the plan says they hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

from megacurl.sync.plan_copy import copy_transfers
from tests.rollout.conftest import NEEDS_VLLM
from tests.sync.layouts import Case, cell_of, draw_case, trainer_shards

pytestmark = NEEDS_VLLM
LAYER = "model.layers.0."


@contextmanager
def vllm_rank(rank: int, size: int) -> Iterator[None]:
    """Layers built inside are those of a rank; no process group is needed to fill them."""
    import vllm.model_executor.layers.linear as linear
    import vllm.model_executor.layers.vocab_parallel_embedding as embedding
    import vllm.model_executor.parameter as parameter
    from vllm.config import VllmConfig, set_current_vllm_config

    answers = {
        "get_tensor_model_parallel_rank": lambda: rank,
        "get_tensor_model_parallel_world_size": lambda: size,
    }
    with ExitStack() as stack:
        for module in (linear, embedding, parameter):
            stack.enter_context(mock.patch.multiple(module, **answers))
        stack.enter_context(set_current_vllm_config(VllmConfig()))
        yield


def loaded_by_vllm(case: Case, hf: dict[str, Tensor], rank: int) -> dict[str, Tensor]:
    """The parameters of a rank as vLLM's loaders fill them."""
    from vllm.model_executor.layers import linear
    from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead

    shape, dtype = case.shape, {"params_dtype": torch.float32}
    hidden, ffn = shape.hidden_size, shape.ffn_hidden_size
    heads, groups, width = shape.num_attention_heads, shape.num_query_groups, shape.head_dim
    with vllm_rank(rank, case.engine.tp):
        qkv = linear.QKVParallelLinear(hidden, width, heads, groups, bias=True, **dtype)
        output = linear.RowParallelLinear(heads * width, hidden, bias=False, **dtype)
        gate_up = linear.MergedColumnParallelLinear(hidden, [ffn, ffn], bias=False, **dtype)
        down = linear.RowParallelLinear(ffn, hidden, bias=False, **dtype)
        words = ParallelLMHead(shape.vocab_size, hidden, **dtype)
        attention, mlp = LAYER + "self_attn.", LAYER + "mlp."
        filled: list[tuple[str, Any, str, tuple[Any, ...]]] = [
            *(
                (
                    f"{attention}qkv_proj.{kind}",
                    getattr(qkv, kind),
                    f"{attention}{p}_proj.{kind}",
                    (p,),
                )
                for p in "qkv"
                for kind in ("weight", "bias")
            ),
            *(
                (f"{mlp}gate_up_proj.weight", gate_up.weight, f"{mlp}{name}_proj.weight", (i,))
                for i, name in enumerate(("gate", "up"))
            ),
            (attention + "o_proj.weight", output.weight, attention + "o_proj.weight", ()),
            (mlp + "down_proj.weight", down.weight, mlp + "down_proj.weight", ()),
            ("lm_head.weight", words.weight, "model.embed_tokens.weight", ()),
        ]
        for _, parameter, source, part in filled:
            parameter.weight_loader(parameter, hf[source], *part)
    return {name: parameter.data for name, parameter, _, _ in filled}


@pytest.mark.parametrize("seed", range(12))
def test_vllm_layers_hold_what_the_plan_writes(seed: int) -> None:
    r = random.Random(seed)
    case = draw_case(r)
    while not (case.shape.tied and case.shape.qkv_bias and case.engine.fused):
        case = draw_case(r)
    case = replace(case, engine=replace(case.engine, replicas=1))
    hf = {
        name: torch.randn(shape)
        for p in case.parameters()
        for name, shape in zip(p.hf, p.shapes, strict=True)
    }
    held = trainer_shards(case, hf)
    theirs = [loaded_by_vllm(case, hf, rank) for rank in range(case.engine.tp)]
    ours = [{n: torch.zeros_like(t) for n, t in shard.items()} for shard in theirs]

    named = (  # without norms, and the embedding under one of its two names
        t._replace(targets=tuple(name for name in t.targets if name in ours[0]))
        for t in case.plan().transfers()
    )
    copy_transfers(
        named,
        lambda sender, name: held[(*cell_of(case.trainer, sender), name)],
        lambda _, rank, name: ours[rank][name],
    )
    for mine, right in zip(ours, theirs, strict=True):
        assert all(torch.equal(mine[name], right[name]) for name in right)
