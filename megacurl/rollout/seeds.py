# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Seeds that belong to a sample, not to the process that happens to generate it."""

from __future__ import annotations

from hashlib import blake2b


def sample_seed(run_seed: int, step: int, prompt_id: str, sample_index: int) -> int:
    """Seed in [0, 2**63) of one sample; the same on every rank, machine and Python version.

    Args:
        run_seed: seed of the run.
        step: training step (or evaluation round) the sample belongs to.
        prompt_id: stable name of the prompt.
        sample_index: position of the sample within its group.
    """
    fields = (str(int(run_seed)), str(int(step)), prompt_id, str(int(sample_index)))
    hasher = blake2b(digest_size=8, person=b"megacurl-sample")
    for text in fields:
        raw = text.encode()
        # Length first: ("ab", "c") and ("a", "bc") must not meet.
        hasher.update(len(raw).to_bytes(8, "little"))
        hasher.update(raw)
    return int.from_bytes(hasher.digest(), "little") >> 1
