# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Time of the compiled operators against their plain PyTorch references and a plain copy.

    python benchmarks/kernels.py                    small and full size, on the CPU
    python benchmarks/kernels.py --device cuda
    OMP_NUM_THREADS=2 python benchmarks/kernels.py --size full

"operator" is torch.ops.megacurl.NAME alone; "function" is the function of megacurl.algorithms that
training calls, with its checks and conversions; "reference" is that function in plain PyTorch.
GB/s counts what the operator has to read and write once; "of copy" relates it to the bandwidth of
``Tensor.copy_`` (read + write) measured just before. Times are the best of several runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from megacurl import ops
from megacurl.algorithms.advantages import apply_weights
from megacurl.algorithms.gae import decoupled_gae, length_adaptive_lambda
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.stochasticity import value_spread
from megacurl.algorithms.value_loss import value_loss

SIZES = {"small": (64, 512), "full": (4096, 6144)}
"""Responses, and the longest of them in tokens; the mean is about 0.42 of that."""


@dataclass(frozen=True)
class Row:
    name: str
    bytes_per_token: int
    operator: Callable[[], Any]
    function: Callable[[], Any]


class Batch:
    """Random inputs with a long-tailed spread of lengths, all tokens valid."""

    def __init__(self, responses: int, longest: int, device: str) -> None:
        torch.manual_seed(0)
        share = torch.distributions.Beta(1.1, 1.5).sample((responses,))
        lengths = (longest * share).long().clamp(16, longest)
        lengths[0] = longest
        self.cu = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int().to(device)
        self.lengths, self.tokens = lengths.to(device), int(lengths.sum())
        self.mask = torch.ones(self.tokens, dtype=torch.bool, device=device)
        self.coefficients = torch.full((self.tokens,), 1 / self.tokens, device=device)
        self.device = device

    def noise(self, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(self.tokens, device=self.device)


def rows(batch: Batch) -> list[Row]:
    """The operators with a pass over tokens, as training calls them."""
    values, rewards, old = batch.noise(), torch.zeros_like(batch.coefficients), batch.noise(0.1)
    rewards[batch.cu[1:].long() - 1] = 1.0
    lam = length_adaptive_lambda(batch.lengths, 0.05)
    one = torch.ones_like(lam)
    advantages, log_probs = batch.noise(), (old + batch.noise(0.1)).requires_grad_()
    new_values = values.clone().requires_grad_()
    mask, cu, coefficients = batch.mask, batch.cu, batch.coefficients
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
        ),
    ]  # fmt: skip


def best(run: Callable[[], Any], device: str, repeats: int) -> float:
    """Return the shortest time in seconds, after one run to warm up."""
    shortest = float("inf")
    for i in range(repeats + 1):
        _wait(device)
        start = time.perf_counter()
        run()
        _wait(device)
        if i:
            shortest = min(shortest, time.perf_counter() - start)
    return shortest


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def copy_bandwidth(tokens: int, device: str) -> float:
    """Return read + written bytes a second of copying ``tokens`` float32 numbers."""
    source, target = torch.randn(tokens, device=device), torch.empty(tokens, device=device)
    return 8 * tokens / best(lambda: target.copy_(source), device, 10)


def measure(size: str, device: str) -> None:
    """Print the table of one size."""
    responses, longest = SIZES[size]
    batch = Batch(responses, longest, device)
    bandwidth = copy_bandwidth(batch.tokens, device)
    print(f"\n{size}: {responses} responses up to {longest} tokens, {batch.tokens:,} tokens;")
    print(f"copy {bandwidth / 1e9:.1f} GB/s, {torch.get_num_threads()} threads, {device}")
    print(f"{'':<24}{'operator':>11}{'function':>11}{'reference':>11}{'times':>7}", end="")
    print(f"{'GB/s':>7}{'of copy':>9}")
    for row in rows(batch):
        operator = best(row.operator, device, 7)
        function = best(row.function, device, 5)
        with ops.using("reference"):
            reference = best(row.function, device, 2)
        rate = row.bytes_per_token * batch.tokens / operator
        print(f"{row.name:<24}", end="")
        print("".join(f"{1e3 * t:>8.2f} ms" for t in (operator, function, reference)), end="")
        print(f"{reference / operator:>6.0f}x{rate / 1e9:>7.1f}{rate / bandwidth:>8.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of the compiled operators.")
    parser.add_argument("--size", choices=[*SIZES, "both"], default="both")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments = parser.parse_args()
    if arguments.device not in ops.device_types():
        raise SystemExit(f"the operators are not built for {arguments.device}; megacurl doctor")
    for size in SIZES if arguments.size == "both" else [arguments.size]:
        measure(size, arguments.device)


if __name__ == "__main__":
    main()
