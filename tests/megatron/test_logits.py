# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The Megatron model computes what transformers computes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests import jobs
from tests.tiny import KINDS, VOCAB
from tests.world import World


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tp", "pp", "sp"), [(1, 1, False), (2, 2, False), (2, 2, True)])
def test_packed_logits_equal_transformers(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    kind: str,
    tp: int,
    pp: int,
    sp: bool,
) -> None:
    folder = tiny_model(kind)
    r = random.Random(1)
    sequences = [[r.randrange(VOCAB) for _ in range(n)] for n in (2, 17, 5, 30, 6)]
    config = jobs.settings(
        folder,
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        sequence_parallel=sp,
        make_vocab_size_divisible_by=8,
    )
    results = world(tp * pp).run(jobs.logits, config, sequences)
    (ours,) = [r for r in results if r is not None]
    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for sequence, logits in zip(sequences, ours, strict=True):
        with torch.no_grad():
            expected = reference(torch.tensor([sequence])).logits[0]
        assert logits.shape == (len(sequence), VOCAB)
        assert expected.abs().max() > 0.5  # not a comparison of zeros
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
