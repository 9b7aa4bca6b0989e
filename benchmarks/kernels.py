# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Time of the compiled operators against plain PyTorch, against verl's functions and a plain copy.

    python benchmarks/kernels.py                    small and full size, on the CPU
    python benchmarks/kernels.py --device cuda
    OMP_NUM_THREADS=2 python benchmarks/kernels.py --size full --peers DIR

"operator" is torch.ops.megacurl.NAME alone; "function" is the function of megacurl.algorithms that
training calls, with its checks and conversions; "reference" is that function in plain PyTorch;
verl's is that of the same purpose, from an environment that is made in DIR, on padded tensors that
are ready (the padding is not counted). GB/s counts what the operator has to read and write once;
"of copy" relates it to the bandwidth of ``Tensor.copy_`` (read + write) measured just before.
"memory" is the operator's peak beyond its inputs, over the size of its outputs. Times are the best
of several runs.

TRL computes GAE and the losses inside of its trainers, where they cannot be called; its function
for log-probs is in log_prob.py.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from megacurl import ops
from megacurl.algorithms.advantages import apply_weights
from megacurl.algorithms.gae import decoupled_gae, length_adaptive_lambda
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.stochasticity import value_spread
from megacurl.algorithms.value_loss import value_loss
from peer_environment import PEERS, make_environment
from timing import best, peak_memory

SIZES = {"small": (64, 512), "full": (4096, 6144)}
"""Responses, and the longest of them in tokens; the mean is about 0.42 of that."""
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """``operator``, and ``function`` whose result ``compared`` turns into what peers return."""

    name: str
    bytes_per_token: int
    operator: Callable[[], Any]
    function: Callable[[], Any]
    compared: Callable[[Any], Tensor] | None = None


class Batch:
    """Random inputs with a long-tailed spread of lengths, all tokens valid."""

    def __init__(self, responses: int, longest: int, device: str) -> None:
        torch.manual_seed(0)
        share = torch.distributions.Beta(1.1, 1.5).sample((responses,))
        lengths = (longest * share).long().clamp(16, longest)
        lengths[0] = longest
        self.cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int().to(device)
        self.tokens = int(lengths.sum())
        self.lam = length_adaptive_lambda(lengths.to(device), 0.05)

        def noise(scale: float = 1.0) -> Tensor:
            return scale * torch.randn(self.tokens, device=device)

        self.mask = torch.ones(self.tokens, dtype=torch.bool, device=device)
        self.values, self.new_values, self.advantages = noise(), noise(), noise()
        self.old = noise(0.1)
        self.log_probs = self.old + noise(0.1)
        self.rewards = torch.zeros_like(self.values)
        self.rewards[self.cu_seqlens[1:].long() - 1] = 1.0
        self.coefficients = torch.full((self.tokens,), 1 / self.tokens, device=device)


def rows(batch: Batch) -> list[Row]:
    """The operators with a pass over tokens, as training calls them."""
    values, rewards, old, advantages = batch.values, batch.rewards, batch.old, batch.advantages
    mask, cu, coefficients, lam = batch.mask, batch.cu_seqlens, batch.coefficients, batch.lam
    one = torch.ones_like(lam)
    log_probs = batch.log_probs.clone().requires_grad_()
    new_values = batch.new_values.clone().requires_grad_()
    op: Any = torch.ops.megacurl
    clip: dict[str, Any] = {"eps_clip": 0.2, "eps_clip_high": 0.28, "dual_clip": 3.0}

    def back(loss: Tensor, leaf: Tensor) -> Tensor:
        return torch.autograd.grad(loss, leaf)[0]

    return [
        Row(
            "gae, two lambdas",
            17,
            lambda: op.gae(values, rewards, mask, cu, lam, one, 1.0, None),
            lambda: decoupled_gae(
                values, rewards, mask, cu, gamma=1.0, lam_policy=lam, lam_critic=one
            ),
            lambda result: result[1],
        ),
        Row(
            "value_stats",
            5,
            lambda: op.value_stats(values, mask, cu),
            lambda: value_spread(values, mask, cu),
        ),
        Row(
            "apply_weights",
            8,
            lambda: op.apply_weights(advantages, one, lam, cu),
            lambda: apply_weights(advantages, one, lam, cu),
        ),
        Row(
            "policy_loss + gradient",
            21,
            lambda: op.policy_loss(
                log_probs.detach(), old, advantages, mask, coefficients, None, None,
                *(0.2, 0.28, 3.0, 20.0),
            ),
            lambda: back(
                policy_loss(log_probs, old, advantages, mask, coefficients, **clip)[0], log_probs
            ),
            lambda result: result,
        ),
        Row(
            "value_loss + gradient",
            21,
            lambda: op.value_loss(
                new_values.detach(), rewards, values, mask, coefficients, 0.2, True
            ),
            lambda: back(
                value_loss(new_values, rewards, values, mask, coefficients, value_clip=0.2)[0],
                new_values,
            ),
            lambda result: result,
        ),
    ]  # fmt: skip


def copy_bandwidth(tokens: int, device: str) -> float:
    """Return read + written bytes a second of copying ``tokens`` float32 numbers."""
    source, target = torch.randn(tokens, device=device), torch.empty(tokens, device=device)
    return 8 * tokens / best(lambda: target.copy_(source), device, 10)


def measure_peers(batch: Batch, python: Path) -> dict[str, dict[str, Any]]:
    """Time, memory and results of the same rows by verl's functions, in a process of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        given, result = Path(scratch) / "batch.pt", Path(scratch) / "result.pt"
        torch.save({k: v for k, v in vars(batch).items() if isinstance(v, Tensor)}, given)
        script = [str(HERE / "kernel_peers.py"), str(given), str(result)]
        done = subprocess.run([python, *script, str(torch.get_num_threads()), "2"])
        if done.returncode:
            sys.exit(f"error: the peers' functions ended with code {done.returncode}, see above")
        return torch.load(result)  # type: ignore[no-any-return]


def output_bytes(results: Any) -> int:
    """Size of all tensors that an operator returned."""
    many = results if isinstance(results, (tuple, list)) else [results]
    return sum(one.nbytes for one in many)


def measure(size: str, device: str, peers: Path | None) -> None:
    """Print the table of one size."""
    responses, longest = SIZES[size]
    batch = Batch(responses, longest, device)
    theirs = measure_peers(batch, peers) if peers else {}
    bandwidth = copy_bandwidth(batch.tokens, device)
    print(f"\n{size}: {responses} responses up to {longest} tokens, {batch.tokens:,} tokens;")
    print(f"copy {bandwidth / 1e9:.1f} GB/s, {torch.get_num_threads()} threads, {device}")
    print(f"{'':<24}{'operator':>11}{'function':>11}{'reference':>11}{'times':>7}", end="")
    print(f"{'verl':>11}{'times':>7}{'GB/s':>7}{'of copy':>9}{'memory':>8}")
    for row in rows(batch):
        print(line(row, batch, device, bandwidth, theirs.get(row.name)), flush=True)
        if row.name in theirs and row.compared:
            check_same(row.name, row.compared(row.function()), theirs[row.name]["result"])


def line(
    row: Row, batch: Batch, device: str, bandwidth: float, theirs: dict[str, Any] | None
) -> str:
    """Measure one operator."""
    # Before the timing, which leaves freed memory with the process.
    memory = peak_memory(row.operator, device) / (output_bytes(row.operator()) / 2**20)
    operator = best(row.operator, device, 7)
    function = best(row.function, device, 5)
    with ops.using("reference"):
        reference = best(row.function, device, 2)
    rate = row.bytes_per_token * batch.tokens / operator
    cells = f"{row.name:<24}"
    cells += "".join(f"{1e3 * t:>8.2f} ms" for t in (operator, function, reference))
    cells += f"{reference / operator:>6.0f}x"
    if theirs:
        cells += f"{1e3 * theirs['seconds']:>8.0f} ms{theirs['seconds'] / operator:>6.0f}x"
    else:
        cells += f"{'-':>11}{'-':>7}"
    large = output_bytes(row.operator()) > 2**20  # of less, nothing can be said
    tail = f"{memory:>7.2f}x" if large else f"{'-':>8}"
    return f"{cells}{rate / 1e9:>7.1f}{rate / bandwidth:>8.0%} {tail}"


def check_same(name: str, ours: Tensor, theirs: Tensor) -> None:
    """Stop if verl computes something else: then the times say nothing."""
    gap = (ours.cpu() - theirs).abs().max() / theirs.abs().max()
    if not gap < 1e-4:
        sys.exit(f"error: {name}: MegaCURL and verl differ by {gap:.1e} of the largest number")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=[*SIZES, "both"], default="both")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="install verl here and compare")
    arguments = parser.parse_args()
    if arguments.device not in ops.device_types():
        raise SystemExit(f"the operators are not built for {arguments.device}; megacurl doctor")
    if arguments.peers and arguments.device != "cpu":
        parser.error("--peers compares on the CPU: verl's environment holds torch's CPU build")
    peers = arguments.peers and make_environment(arguments.peers, PEERS / "functions.txt")
    for size in SIZES if arguments.size == "both" else [arguments.size]:
        measure(size, arguments.device, peers)


if __name__ == "__main__":
    main()
