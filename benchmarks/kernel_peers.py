# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""verl's functions on the padded form of kernels.py's batch; runs in the peers' environment.

``kernel_peers.py BATCH RESULT THREADS REPEATS``: files of ``torch.save``. It never imports
MegaCURL, whose requirements that environment does not hold.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from verl.trainer.ppo.core_algos import (  # type: ignore[import-not-found]
    compute_gae_advantage_return,
    compute_policy_loss_vanilla,
    compute_value_loss,
)
from verl.workers.config import ActorConfig  # type: ignore[import-not-found]

from timing import best, peak_memory


def pad(packed: Tensor, cu_seqlens: Tensor) -> Tensor:
    """[tokens] -> [responses, longest], zeros where there is none."""
    return pad_sequence(packed.split(cu_seqlens.diff().tolist()), batch_first=True)


def contenders(batch: dict[str, Tensor]) -> dict[str, Callable[[], Any]]:
    """What is timed, by the name of its row; each returns what is compared with MegaCURL's."""
    cu = batch["cu_seqlens"]
    mask, values, rewards, old, log_probs, new_values, advantages = (
        pad(batch[name].float(), cu)
        for name in ("mask", "values", "rewards", "old", "log_probs", "new_values", "advantages")
    )
    log_probs.requires_grad_()
    new_values.requires_grad_()
    config = ActorConfig(
        strategy="fsdp",
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
        clip_ratio=0.2,
        clip_ratio_low=0.2,
        clip_ratio_high=0.28,
        clip_ratio_c=3.0,
    )

    def gae() -> Tensor:
        compute_gae_advantage_return(rewards, values, mask, 1.0, batch["lam"])
        returns: Tensor = compute_gae_advantage_return(rewards, values, mask, 1.0, 1.0)[1]
        return returns[mask.bool()]

    def policy() -> Tensor:
        loss, _ = compute_policy_loss_vanilla(old, log_probs, advantages, mask, config=config)
        return torch.autograd.grad(loss, log_probs)[0][mask.bool()]

    def value() -> Tensor:
        loss, _ = compute_value_loss(new_values, rewards, values, mask, 0.2)
        return torch.autograd.grad(loss, new_values)[0][mask.bool()]

    return {
        "gae, two lambdas": gae,
        "policy_loss + gradient": policy,
        "value_loss + gradient": value,
    }


def main() -> None:
    batch_file, result_file, threads, repeats = sys.argv[1:]
    torch.set_num_threads(int(threads))
    rows = {}
    for name, run in contenders(torch.load(Path(batch_file))).items():
        memory = peak_memory(run, "cpu")
        rows[name] = {"seconds": best(run, "cpu", int(repeats)), "memory": memory, "result": run()}
    torch.save(rows, result_file)


if __name__ == "__main__":
    main()
