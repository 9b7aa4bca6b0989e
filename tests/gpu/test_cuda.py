# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The same loop on a CUDA device: numbers against transformers, then three CVPO steps."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from megacurl.megatron import cpu
from megacurl.observe.sinks.jsonl import read_rows
from tests import jobs
from tests.e2e.test_resume import config_of, questions
from tests.tiny import VOCAB
from tests.world import World

pytestmark = pytest.mark.skipif(not cpu.has_gpu(), reason="needs a CUDA device")
HAS_TE = importlib.util.find_spec("transformer_engine") is not None
IMPLEMENTATIONS = [
    "local",
    pytest.param(
        "transformer_engine",
        marks=pytest.mark.skipif(not HAS_TE, reason="Transformer Engine is not installed"),
    ),
]


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize(("bf16", "bound"), [(False, 1e-3), (True, 0.15)])
def test_logits(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    impl: str,
    bf16: bool,
    bound: float,
) -> None:
    """bound: fp32 goes through TF32 in Transformer Engine; logits here reach about 3."""
    folder = tiny_model("qwen2-tied")
    r = random.Random(1)
    sequences = [[r.randrange(VOCAB) for _ in range(n)] for n in (2, 17, 5)]
    config = jobs.settings(folder, transformer_impl=impl, bf16=bf16)
    (ours,) = world(1).run(jobs.logits, config, sequences)
    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for sequence, logits in zip(sequences, ours, strict=True):
        with torch.no_grad():
            expected = reference(torch.tensor([sequence])).logits[0]
        torch.testing.assert_close(logits.float().cpu(), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_cvpo_steps(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], tmp_path: Path, impl: str
) -> None:
    config = config_of(
        tiny_model("llama-untied"),
        questions(tmp_path),
        tmp_path / "run",
        train_iters=3,
        bf16=True,
        transformer_impl=impl,
    )
    world(1).run(jobs.run_training, config)
    rows = read_rows(tmp_path / "run" / "metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert rows[-1]["sync/logprob_gap"] < 0.1
    assert (tmp_path / "run" / "hf" / "model.safetensors").is_file()
