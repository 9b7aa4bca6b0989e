# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What holds for every operator: checked arguments, tracing, gradients, threads, processors."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from megacurl import ops
from megacurl.algorithms.advantages import apply_weights
from megacurl.algorithms.gae import gae
from megacurl.algorithms.policy_loss import policy_loss
from megacurl.algorithms.softmax_parts import softmax_grad, softmax_sums
from megacurl.algorithms.stochasticity import (
    group_mean_spread,
    stochasticity_weight,
    value_spread,
)
from megacurl.algorithms.value_loss import value_loss
from tests.ops.batches import Ragged

pytestmark = pytest.mark.skipif(not ops.is_built(), reason="the operators are not built")
OPS: Any = torch.ops.megacurl
CLIP = (0.2, 0.28, 3.0, 20.0)
SETTINGS = (0.3, 0.3, 50.0, 50.0, False, False, False, 1.0, 0.5, 1.0, 0.5)


def calls(
    kind: str = "random", lengths: tuple[int, ...] = (5, 0, 40)
) -> dict[str, tuple[Any, ...]]:
    """Return arguments of every operator, on finite numbers."""
    batch = Ragged.of(kind, lengths)
    n = len(lengths)

    def token() -> Tensor:
        return batch.noise().nan_to_num(0.0)

    cu, lam = batch.cu_seqlens(), batch.per_sequence().double()
    new = (token() * 0.1).requires_grad_()
    values = token().requires_grad_()
    coefficients = torch.full((batch.tokens,), 0.01)
    logits, targets = torch.randn(n, 37), torch.tensor([3, -1, 36] * n)[:n]
    row = torch.rand(n)
    spread, correct = batch.per_sequence().double(), batch.per_sequence() > 0.5
    return {
        "value_stats": (token(), batch.mask, cu),
        "group_mean": (spread, correct, torch.tensor([0, 1, n])),
        "gae": (token(), token(), batch.mask, cu, lam, lam, 0.99, batch.per_sequence()),
        "cvpo_weights": (spread, lam, correct, lam, token(), cu, *SETTINGS),
        "apply_weights": (token(), lam, spread, cu),
        "policy_loss": (
            new, token() * 0.1, token(), batch.mask, coefficients, token().abs(), token(), *CLIP,
        ),
        "log_prob_sums": (logits, targets, 0.7),
        "log_prob_grad": (logits, targets, row + 5, row, -row, row, 0.7),
        "value_loss": (values, token(), token(), batch.mask, coefficients, 0.2, True),
    }  # fmt: skip


@pytest.mark.parametrize("name", ops.NAMES)
def test_opcheck(name: str) -> None:
    """Schema, fake shapes, autograd registration and tracing agree with what the operator does."""
    torch.library.opcheck(getattr(OPS, name).default, calls()[name])


@pytest.mark.parametrize("name", ["policy_loss", "value_loss"])
def test_gradient_is_that_of_the_loss(name: str) -> None:
    """Central differences, in float32: the operators take nothing wider."""
    leaf, *rest = calls()[name]
    loss = getattr(OPS, name)(leaf, *rest)[0]
    (grad,) = torch.autograd.grad(loss, leaf)
    step = 1e-2
    with torch.no_grad():
        for i in range(0, leaf.numel(), 3):
            shifted = [leaf.clone(), leaf.clone()]
            shifted[0][i] += step
            shifted[1][i] -= step
            up, down = (float(getattr(OPS, name)(x, *rest)[0]) for x in shifted)
            assert (up - down) / (2 * step) == pytest.approx(float(grad[i]), abs=2e-4)


def test_one_graph_for_compile() -> None:
    inputs = calls()
    cu = inputs["gae"][3]

    def step(new: Tensor) -> Tensor:
        advantages, returns = OPS.gae(*inputs["gae"])
        weighted = OPS.apply_weights(advantages, *inputs["apply_weights"][1:3], cu)
        _, old, _, *rest = inputs["policy_loss"]
        return OPS.policy_loss(new * 1.0, old, weighted, *rest)[0] + returns.sum()

    leaf = inputs["policy_loss"][0]
    plain = step(leaf)
    (expected,) = torch.autograd.grad(plain, leaf)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")(leaf)
    assert torch.equal(plain, compiled)
    assert torch.equal(torch.autograd.grad(compiled, leaf)[0], expected)


def flat(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


@pytest.mark.parametrize("name", ops.NAMES)
def test_same_bits_for_any_number_of_threads(name: str) -> None:
    arguments = calls(lengths=tuple(range(0, 4000, 37)))[name]
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(flat(getattr(OPS, name)(*arguments)))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("isa", ["base", "avx2"])
def test_older_processors_give_the_same_numbers(isa: str) -> None:
    """The whole of test_operators with another instruction set than the best of this machine."""
    test = (
        "from megacurl import ops; import pytest, sys; "
        f"assert ops.build_info().cpu_isa in ('base', {isa!r}); "
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'tests/ops/test_operators.py']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", test],
        env={**os.environ, "MEGACURL_CPU_ISA": isa},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("name", "position", "wrong", "message"),
    [
        ("gae", 0, torch.zeros(45, dtype=torch.float64), "values is float64"),
        ("gae", 0, torch.zeros(5, 9), "values has 2 dimensions"),
        ("gae", 1, torch.zeros(44), "rewards has 44 entries; it must have 45"),
        ("gae", 1, torch.zeros(90)[::2], "rewards has 1 dimensions or gaps"),
        ("gae", 2, torch.zeros(45), "mask is float32; it must be bool"),
        ("gae", 3, torch.tensor([0.0, 5.0, 5.0, 45.0]), "cu_seqlens is float32"),
        ("gae", 3, torch.tensor([1, 5, 5, 45]), "cu_seqlens must start at 0"),
        ("gae", 3, torch.tensor([0, 50, 5, 45]), "cu_seqlens decreases"),
        ("gae", 3, torch.tensor([0, 5, 5, 44]), "cu_seqlens must end at the number of entries, 45"),
        ("gae", 3, torch.zeros(0, dtype=torch.int64), "cu_seqlens is empty"),
        ("gae", 4, torch.zeros(3), "lam_policy is float32; it must be float64"),
        ("gae", 5, torch.zeros(2, dtype=torch.float64), "lam_critic has 2 entries"),
        ("gae", 6, 1.5, "gamma is 1.5"),
        ("gae", 7, torch.zeros(1), "bootstrap has 1 entries; it must have 3"),
        ("value_stats", 2, torch.tensor([0, 46]), "must end at the number of entries, 45"),
        ("group_mean", 0, torch.zeros(3), "x is float32"),
        ("group_mean", 2, torch.tensor([0, 2]), "offsets must end at"),
        ("cvpo_weights", 5, None, "give advantages and cu_seqlens both"),
        ("cvpo_weights", 2, torch.zeros(3), "correct is float32"),
        ("apply_weights", 1, torch.zeros(4, dtype=torch.float64), "w_s has 4 entries"),
        ("policy_loss", 4, torch.zeros(3), "coefficients has 3 entries"),
        ("policy_loss", 7, 1.5, "eps_clip is 1.5"),
        ("policy_loss", 9, 0.5, "dual_clip is 0.5"),
        ("policy_loss", 10, 100.0, "log_ratio_clamp is 100"),
        ("value_loss", 5, 0.0, "value_clip is 0"),
        ("log_prob_sums", 0, torch.zeros(3, 2).t(), "logits has 2 dimensions or gaps"),
        ("log_prob_sums", 1, torch.zeros(2, dtype=torch.int64), "targets has 2 entries"),
        ("log_prob_sums", 2, 0.0, "temperature is 0"),
        ("log_prob_grad", 2, torch.zeros(1), "normalizer has 1 entries; it must have 3"),
        ("value_loss", 1, torch.zeros(45, dtype=torch.bfloat16), "returns is bfloat16"),
    ],
)
def test_wrong_arguments_are_named(name: str, position: int, wrong: Any, message: str) -> None:
    arguments = list(calls()[name])
    arguments[position] = wrong
    with pytest.raises(RuntimeError, match=message):
        getattr(OPS, name)(*arguments)


class Called(TorchDispatchMode):
    """Collects the names of the operators that run inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        namespace, _, name = func.name().partition("::")
        if namespace == "megacurl":
            self.names.add(name.partition(".")[0])
        return func(*args, **(kwargs or {}))


def test_the_formulas_run_on_the_operators() -> None:
    """In the types of training; otherwise the property tests would compare references."""
    batch = Ragged.of("random", (5, 0, 40))
    cu, mask = batch.cu_seqlens(), batch.valid
    x, coefficients = batch.noise(), torch.ones(batch.tokens)
    correct, group = torch.tensor([True, False, True]), torch.tensor([0, 0, 1])
    logits, targets = torch.randn(3, 37), torch.tensor([3, 36, 0])
    with ops.using("auto"), Called() as called:
        advantages, returns = gae(x, coefficients * 0, mask, cu, gamma=1.0, lam=0.9)
        spread = value_spread(x, mask, cu)
        mean = group_mean_spread(spread, group, correct)
        w_s = stochasticity_weight(
            spread, mean, correct, alpha_p=0.3, alpha_n=0.3, lambda_p=50.0, lambda_n=50.0
        )
        weighted = apply_weights(advantages, w_s, None, cu)
        policy_loss(x, x, weighted, mask, coefficients, eps_clip=0.2, eps_clip_high=0.28)
        value_loss(x, returns, x, mask, coefficients, value_clip=0.2)
        top, total, *_ = softmax_sums(logits, targets, 1.0)
        one = torch.ones(3)
        softmax_grad(logits, targets, 1.0, top + total.log(), one, one, one)
    assert called.names == set(ops.NAMES)
