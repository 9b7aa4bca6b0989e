# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Time and memory of log-probs and entropies of an output layer, fused and unfused, on a CPU.

    python benchmarks/log_prob.py
    OMP_NUM_THREADS=2 python benchmarks/log_prob.py --tokens 8192

"fused" is what training calls (chunks of tokens, computed again in backward) with the compiled
operators, "fused, PyTorch" is that with the references, "unfused" keeps all logits and leaves the
gradient to autograd. Seconds are of the clock, and in brackets of all threads together, which
other work on the machine changes less. Memory is the peak beyond the inputs, and beyond the
gradients that come out. The numbers of all are compared.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from megacurl import ops
from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits
from megacurl.megatron.log_prob import vocab_parallel_log_prob

VARIANTS = ("fused", "fused, PyTorch", "unfused")


@dataclass(frozen=True)
class Shape:
    tokens: int
    hidden: int
    vocab: int
    chunk: int


@dataclass(frozen=True)
class Result:
    forward: tuple[float, float, float]
    """Seconds, CPU seconds, MB."""
    both: tuple[float, float, float]
    log_prob: Tensor
    entropy: Tensor
    grads: tuple[Tensor, ...]


def run(variant: str, shape: Shape, threads: int) -> Result:
    """Measure one variant, in a process of its own."""
    torch.set_num_threads(threads)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]
    torch.manual_seed(0)
    hidden = torch.randn(shape.tokens, shape.hidden).requires_grad_()
    weight = (0.05 * torch.randn(shape.vocab, shape.hidden)).requires_grad_()
    targets = torch.randint(shape.vocab, (shape.tokens,))

    def compute() -> tuple[Tensor, Tensor]:
        if variant == "unfused":
            logits = hidden @ weight.t()
            return log_probs_from_logits(logits, targets), entropy_from_logits(logits)
        return vocab_parallel_log_prob(
            hidden,
            weight,
            targets,
            temperature=1.0,
            vocab_size=shape.vocab,
            chunk_size=shape.chunk,
            group=dist.group.WORLD,
        )

    with ops.using("reference" if variant == "fused, PyTorch" else "auto"):
        _ = (hidden[:8] @ weight.t()).sum()  # libraries and threads are there now
        meter = Meter()
        with torch.no_grad():
            compute()
        forward = meter.read()
        meter = Meter()
        log_prob, entropy = compute()
        grads = torch.autograd.grad(log_prob.sum() + 0.1 * entropy.sum(), (hidden, weight))
        seconds, cpu, memory = meter.read()
        both = (seconds, cpu, memory - sum(g.nbytes for g in grads) / 2**20)
    dist.destroy_process_group()
    return Result(forward, both, log_prob.detach(), entropy.detach(), grads)


class Meter:
    """Time and peak memory since it was made."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak starts anew
        self.base = _status("VmRSS")
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float, float]:
        clock, cpu = time.perf_counter() - self.start[0], time.process_time() - self.start[1]
        return clock, cpu, _status("VmHWM") - self.base


def _status(name: str) -> float:
    """Return a size of this process in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Log-probs of an output layer, fused and unfused.")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=896)
    parser.add_argument("--vocab", type=int, default=151936)
    parser.add_argument("--chunk", type=int, default=128)
    given = parser.parse_args()
    shape = Shape(given.tokens, given.hidden, given.vocab, given.chunk)
    logits = 4 * shape.tokens * shape.vocab / 2**20
    threads = torch.get_num_threads()
    print(f"{shape}, float32, {threads} threads; all logits are {logits:.0f} MB")
    print(f"{'':<16}{'forward':>27}{'with backward':>30}")
    results = {}
    for variant in VARIANTS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            results[variant] = r = pool.apply(run, (variant, shape, threads))
        columns = [f"{s:.2f} s ({cpu:.2f} s) {mb:5.0f} MB" for s, cpu, mb in (r.forward, r.both)]
        print(f"{variant:<16}{columns[0]:>27}{columns[1]:>30}")
    expected = results["unfused"]
    for variant in VARIANTS[:2]:
        found = results[variant]
        gaps = [(found.log_prob - expected.log_prob).abs().max().item()]
        gaps += [
            ((f - e).norm() / e.norm()).item()
            for f, e in zip(found.grads, expected.grads, strict=True)
        ]
        print(f"{variant}: log-probs within {gaps[0]:.1e}, gradients within {max(gaps[1:]):.1e}")


if __name__ == "__main__":
    main()
