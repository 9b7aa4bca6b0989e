# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Time and memory of log-probs and entropies of an output layer, fused and unfused, on a CPU.

    python benchmarks/log_prob.py
    OMP_NUM_THREADS=2 python benchmarks/log_prob.py --tokens 2048 --peers DIR
    OMP_NUM_THREADS=2 python benchmarks/log_prob.py --tokens 8192 --variants fused

"fused" is what training calls (chunks of tokens, computed again in backward) with the compiled
operators, "reference" is that in plain PyTorch, "unfused" keeps all logits and leaves the gradient
to autograd: it needs about five times the memory of the logits. With ``--peers`` also "TRL", which
goes through the vocabulary in chunks, from an environment that is made in DIR. Seconds are of the
clock, and in brackets of all threads together, which other work on the machine changes less. Memory
is the peak beyond the inputs, and beyond the gradients that come out. Times and numbers are
compared with those of the first row.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from log_prob_case import Result, Shape, measure
from megacurl import ops
from megacurl.algorithms.logits import entropy_from_logits, log_probs_from_logits
from megacurl.megatron.log_prob import vocab_parallel_log_prob
from peer_environment import PEERS, make_environment

VARIANTS = ("unfused", "fused", "reference")
HERE = Path(__file__).resolve().parent


def run(variant: str, shape: Shape, threads: int) -> Result:
    """Measure one variant, in a process of its own."""
    torch.set_num_threads(threads)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]

    def compute(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
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

    with ops.using("reference" if variant == "reference" else "auto"):
        result = measure(compute, shape)
    dist.destroy_process_group()
    return result


def run_trl(python: Path, shape: Shape, threads: int) -> Result:
    """Measure TRL, in its own environment."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "result.pt"
        given = json.dumps(dataclasses.asdict(shape))
        script = [str(HERE / "log_prob_peers.py"), given, str(file), str(threads)]
        done = subprocess.run([python, *script])
        if done.returncode:
            sys.exit(f"error: TRL's function ended with code {done.returncode}, see above")
        return Result(**torch.load(file))


def line(name: str, result: Result, first: Result) -> str:
    """A row of the table; ratios to the row printed first."""
    cells = []
    for (seconds, cpu, mb), (against, _, _) in zip(
        (result.forward, result.both), (first.forward, first.both), strict=True
    ):
        cells.append(f"{seconds:.2f} s ({cpu:.2f} s) {seconds / against:.2f}x {mb:6.0f} MB")
    return f"{name:<12}{cells[0]:>36}{cells[1]:>36}"


def gaps(found: Result, expected: Result) -> tuple[float, float]:
    """Largest difference of a log-prob, and of a gradient in relative norm."""
    of_grads = [
        ((f - e).norm() / e.norm()).item() for f, e in zip(found.grads, expected.grads, strict=True)
    ]
    return (found.log_prob - expected.log_prob).abs().max().item(), max(of_grads)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--hidden", type=int, default=896)
    parser.add_argument("--vocab", type=int, default=151936)
    parser.add_argument("--chunk", type=int, default=128, help="tokens at a time")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--peers", type=Path, metavar="DIR", help="install TRL here and compare")
    return parser.parse_args()


def main() -> None:
    """Entry point."""
    given = parse_arguments()
    shape = Shape(given.tokens, given.hidden, given.vocab, given.chunk)
    logits = 4 * shape.tokens * shape.vocab / 2**20
    threads = torch.get_num_threads()
    peers = given.peers and make_environment(given.peers, PEERS / "functions.txt")
    print(f"{shape}, float32, {threads} threads; all logits are {logits:.0f} MB")
    print(f"{'':<12}{'forward':>36}{'with backward':>36}")
    first: tuple[str, Result] | None = None
    for name in (*given.variants, *(["TRL"] if peers else [])):
        if name == "TRL" and peers:
            result = run_trl(peers, shape, threads)
        else:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                result = pool.apply(run, (name, shape, threads))
        first = first or (name, result)
        print(line(name, result, first[1]), flush=True)
        if name != first[0]:
            log_prob, grads = gaps(result, first[1])
            print(f"{'':<12}log-probs within {log_prob:.1e} of {first[0]}, gradients {grads:.1e}")


if __name__ == "__main__":
    main()
