# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""HF -> Megatron -> HF gives back every bit and every file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests import jobs
from tests.tiny import KINDS, make_model
from tests.world import World


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    found = {}
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            found.update({name: file.get_tensor(name) for name in names})
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tp", "pp", "chunk"), [(1, 1, None), (2, 2, None), (1, 2, 1)])
def test_bit_exact_and_complete(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
    tp: int,
    pp: int,
    chunk: int | None,
) -> None:
    source, target = tiny_model(kind), tmp_path / "out"
    config = jobs.settings(
        source,
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        num_layers_per_virtual_pipeline_stage=chunk,
    )
    world(tp * pp).run(jobs.round_trip, config, target)
    before, after = tensors_of(source), tensors_of(target)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert tensor.dtype == after[name].dtype
        assert torch.equal(tensor, after[name]), name
    assert {p.name for p in source.iterdir()} == {p.name for p in target.iterdir()}
    for name in ("tokenizer.json", "generation_config.json", "config.json"):
        assert (source / name).read_text() == (target / name).read_text()
    AutoModelForCausalLM.from_pretrained(target)
    assert AutoTokenizer.from_pretrained(target)("ab")["input_ids"]


def test_sharded_source(world: Callable[[int], World], tmp_path: Path) -> None:
    """A checkpoint of several files with an index loads, and its export loads again."""
    source = make_model(tmp_path / "sharded", "llama-untied", max_shard_size="20KB")
    assert len(list(source.glob("*.safetensors"))) > 2
    config = jobs.settings(source, tensor_model_parallel_size=2, pipeline_model_parallel_size=2)
    world(4).run(jobs.round_trip, config, tmp_path / "out")
    before, after = tensors_of(source), tensors_of(tmp_path / "out")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
