# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The trained policy as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

from megacurl.megatron.groups import Grid
from megacurl.models.export_hf import HFWriter, copy_companions
from megacurl.models.network import Network
from megacurl.sync.gather import gather_hf_weights, plan_gather
from megacurl.utils.files import replaced_directory

_BUCKET_BYTES = 256 << 20


def export_hf(network: Network, source: str | Path, target: str | Path, grid: Grid) -> None:
    """Write ``network`` to ``target``; collective over all ranks, rank 0 writes.

    Args:
        network: this rank's part of a policy.
        source: HF folder that the policy came from; its config and tokenizer files are copied.
        target: folder to write; it appears complete or not at all, and replaces an older one.
    """
    plan = plan_gather(network, grid, _BUCKET_BYTES)
    with network.weights.in_use():
        buckets = gather_hf_weights(network, plan, grid)
        if grid.rank == 0:
            with replaced_directory(Path(target)) as folder:
                writer = HFWriter(folder)
                for bucket in buckets:
                    writer.add(bucket)
                writer.close()
                copy_companions(Path(source), folder, plan.parameters[0].dtype)
        else:
            for _ in buckets:
                pass
    grid.barrier()
