# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The CUDA kernels against the CPU operators, which tests/ops holds to the float64 references.

Needs torch with CUDA, a compiler, nvcc, and nothing of Megatron.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from megacurl import ops
from tests.ops.batches import LENGTHS, MASKS
from tests.ops.test_contract import calls, flat

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
OPS: Any = torch.ops.megacurl


def on_cuda(argument: Any) -> Any:
    if not isinstance(argument, Tensor):
        return argument
    return argument.detach().cuda().requires_grad_(argument.requires_grad)


def test_kernels_are_built_for_this_device() -> None:
    info = ops.build_info()
    assert info is not None and info.cuda_archs, "python setup.py build_ext --inplace with nvcc"
    major, minor = torch.cuda.get_device_capability()
    assert 10 * major + minor >= min(int(arch) for arch in info.cuda_archs)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("name", ops.NAMES)
def test_same_as_on_the_cpu(name: str, kind: str) -> None:
    arguments = calls(kind, LENGTHS)[name]
    expected = flat(getattr(OPS, name)(*arguments))
    cuda = tuple(on_cuda(a) for a in arguments)
    found = flat(getattr(OPS, name)(*cuda))
    again = flat(getattr(OPS, name)(*cuda))
    for f, a, e in zip(found, again, expected, strict=True):
        assert f.is_cuda and f.dtype == e.dtype and torch.equal(f, a), "the bits repeat"
        scale = max(1.0, float(e.abs().max())) if e.numel() else 1.0
        torch.testing.assert_close(f.cpu(), e, rtol=1e-5, atol=5e-6 * scale)


@pytest.mark.parametrize("name", ops.NAMES)
def test_same_as_emulated(name: str) -> None:
    """The same kernels on a GPU and on the CPU's emulation of one: what the tests without a GPU
    have shown of the one holds for the other."""
    emulated = getattr(torch.ops.megacurl_emu, name, None)
    assert emulated is not None, "build with MC_EMU=1, as tests/gpu/run.sh does"
    arguments = calls("gaps", LENGTHS)[name]
    expected = flat(emulated(*arguments))
    found = flat(getattr(OPS, name)(*(on_cuda(a) for a in arguments)))
    for f, e in zip(found, expected, strict=True):
        scale = max(1.0, float(e.abs().max())) if e.numel() else 1.0
        torch.testing.assert_close(f.cpu(), e, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("dtype", [torch.bfloat16])
@pytest.mark.parametrize("name", ["gae", "value_stats"])
def test_bfloat16_values(name: str, dtype: torch.dtype) -> None:
    values, *rest = calls("gaps", LENGTHS)[name]
    expected = flat(getattr(OPS, name)(values.to(dtype), *rest))
    found = flat(getattr(OPS, name)(values.to(dtype).cuda(), *(on_cuda(a) for a in rest)))
    for f, e in zip(found, expected, strict=True):
        scale = max(1.0, float(e.abs().max()))
        torch.testing.assert_close(f.cpu(), e, rtol=1e-5, atol=5e-6 * scale)


@pytest.mark.parametrize("name", ["policy_loss", "value_loss"])
def test_gradients(name: str) -> None:
    arguments = calls("random", LENGTHS)[name]
    grads = []
    for inputs in (arguments, tuple(on_cuda(a) for a in arguments)):
        loss = getattr(OPS, name)(*inputs)[0]
        grads.append(torch.autograd.grad(3 * loss, inputs[0])[0].cpu())
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("offsets", [[1, 5, 5, 45], [0, 50, 5, 45], [0, 5, 5, 44]])
def test_offsets_are_checked_on_the_device(offsets: list[int]) -> None:
    arguments = [on_cuda(a) for a in calls()["value_stats"]]
    arguments[2] = torch.tensor(offsets, device="cuda")
    with pytest.raises(RuntimeError, match="cu_seqlens"):
        OPS.value_stats(*arguments)


def test_the_current_stream_is_used() -> None:
    arguments = tuple(on_cuda(a) for a in calls("random", LENGTHS)["apply_weights"])
    expected = OPS.apply_weights(*arguments)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)  # so that work on another stream would come too early
        late = arguments[0] * 2
        found = OPS.apply_weights(late, *arguments[1:])
    side.synchronize()
    torch.testing.assert_close(found, 2 * expected)
