# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every change that MegaCURL makes to megatron.core, in one place.

megatron.core names the device "cuda" in its source. On a machine without a GPU ``install()`` puts
stand-ins under ``torch.cuda`` and ``cuda_is_cpu()`` redirects the tensors that Megatron creates.
On any machine ``install()`` also mends two faults of the distributed optimizer's checkpoint loader,
ties the checkpoint writer's helper process to its trainer, and offers a faster rotation of packs;
``count_bucket_padding`` mends a fault of its checkpoint writer.
Each patch says what breaks without it; tests/megatron/test_cpu_patches.py tells when one can go.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.managers import SyncManager
from typing import Any, ParamSpec, TypeVar

import torch
from torch.overrides import TorchFunctionMode

from megacurl.utils.processes import end_with_parent

P = ParamSpec("P")
R = TypeVar("R")


def has_gpu() -> bool:
    """Whether this machine really has a CUDA device (the stand-ins do not change the answer)."""
    return torch.cuda.is_available()


def _is_cuda(device: object) -> bool:
    if isinstance(device, (str, torch.device)):
        return torch.device(device).type == "cuda"
    return False


class _CudaIsCpu(TorchFunctionMode):
    """Factory calls, ``.to`` and ``.cuda`` that ask for CUDA get the CPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs) if kwargs else {}
        if "device" in kwargs and _is_cuda(kwargs["device"]):
            kwargs["device"] = "cpu"
            kwargs.pop("pin_memory", None)
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(a) else a for a in args)
        if func is torch.Tensor.type and len(args) == 1 and not kwargs:
            # The distributed optimizer sorts parameters by comparing this with "torch.cuda.…".
            return func(*args).replace("torch.", "torch.cuda.")
        return func(*args, **kwargs)


@contextlib.contextmanager
def cuda_is_cpu() -> Iterator[None]:
    """Run Megatron code that names CUDA devices; does nothing on a machine with a GPU.

    It is a scope and not a process-wide switch because the redirection costs microseconds on every
    torch call, which the rollout engine, in the same process, would pay on every token.
    """
    if has_gpu():
        yield
        return
    with _CudaIsCpu():
        yield


def on_megatron_device(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function whose body calls Megatron: it runs inside ``cuda_is_cpu()``."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with cuda_is_cpu():
            return function(*args, **kwargs)

    return run


class _NoStream:
    """Stands for a CUDA stream or event: on a CPU everything has already happened."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def wait_stream(self, *args: Any) -> None: ...
    def wait_event(self, *args: Any) -> None: ...
    def synchronize(self) -> None: ...
    def record(self, *args: Any) -> None: ...
    def wait(self, *args: Any) -> None: ...

    def record_event(self, *args: Any) -> _NoStream:
        return _NoStream()

    def query(self) -> bool:
        return True

    def elapsed_time(self, *args: Any) -> float:
        return 0.0

    def __enter__(self) -> _NoStream:
        return self

    def __exit__(self, *args: Any) -> None: ...


def _stand_in_for_cuda() -> None:
    cuda: Any = torch.cuda
    cuda.current_device = lambda: torch.device("cpu")
    cuda.current_stream = cuda.default_stream = lambda *a, **k: _NoStream()
    cuda.Stream = cuda.Event = _NoStream
    cuda.stream = lambda stream: contextlib.nullcontext()
    for name in ("synchronize", "empty_cache", "set_device", "reset_peak_memory_stats"):
        setattr(cuda, name, lambda *a, **k: None)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved"):
        setattr(cuda, name, lambda *a, **k: 0)
    cuda.get_rng_state = lambda *a, **k: torch.get_rng_state()
    cuda.set_rng_state = lambda state, *a, **k: torch.set_rng_state(state)
    cuda.manual_seed = torch.manual_seed
    for kind in ("Float", "Int", "Byte", "Half", "BFloat16", "Long", "Double"):
        setattr(cuda, f"{kind}Tensor", getattr(torch, f"{kind}Tensor"))

    # Megatron's RNG tracker reaches the generator through torch._C, past the stand-ins above.
    import megatron.core.tensor_parallel.random as megatron_random

    def get_state(device: Any = "cuda", clone: bool = False, graph_safe: bool = False) -> Any:
        return torch.get_rng_state()

    def set_state(new_state: Any, device: Any = -1, graph_safe: bool = False) -> None:
        torch.set_rng_state(new_state)

    megatron_random._get_cuda_rng_state = get_state
    megatron_random._set_cuda_rng_state = set_state


def _mend_adam_step() -> None:
    """Give every parameter a step counter of its own when optimizer state is loaded.

    torch's AdamW keeps a ``step`` tensor per parameter. Megatron's loader has no tensor of that
    name (KeyError), and hands one shared tensor to all parameters, so AdamW would count one step
    once per parameter and a resumed run would drift without an error.
    """
    from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer

    original = DistributedOptimizer._set_main_param_and_optimizer_states
    if getattr(original, "megacurl", False):
        return

    def keep_step(self: Any, model_param: Any, tensors: Any) -> None:
        group, order = self.model_param_group_index_map[model_param]
        param = self.optimizer.param_groups[group]["params"][order]
        step = self.optimizer.state[param].pop("step", None)
        original(self, model_param, tensors)
        if step is not None:
            self.optimizer.state[param]["step"] = step.clone()

    keep_step.megacurl = True  # type: ignore[attr-defined]
    DistributedOptimizer._set_main_param_and_optimizer_states = keep_step


def _end_writer_with_trainer() -> None:
    """Let the process behind the checkpoint writer's queue end with its trainer.

    megatron-core 0.16 keeps a manager process for that queue. A trainer that is killed, as torchrun
    does with every rank when one fails, would leave it running for ever. Later versions have none.
    """
    from megatron.core.dist_checkpointing.strategies import filesystem_async

    if not hasattr(filesystem_async, "_get_write_results_queue"):
        return

    @functools.cache
    def results_queue() -> Any:
        manager = SyncManager(ctx=multiprocessing.get_context("spawn"))
        manager.start(end_with_parent, (os.getpid(),))
        return manager.Queue()

    filesystem_async._get_write_results_queue = results_queue


def _offer_packed_rope() -> None:
    """Put our rotation of packs where Megatron looks for Transformer Engine's, if that is missing.

    Its own loops over the sequences of a pack in every layer; ``rope.py`` says what that costs.
    """
    from megatron.core.models.common.embeddings import rope_utils

    from megacurl.megatron.rope import rotate_packed

    if rope_utils.fused_apply_rotary_pos_emb_thd is None:
        rope_utils.fused_apply_rotary_pos_emb_thd = rotate_packed


def has_packed_rope() -> bool:
    """Whether Megatron's fused rotation of packs is ours."""
    from megatron.core.models.common.embeddings import rope_utils

    from megacurl.megatron.rope import rotate_packed

    return rope_utils.fused_apply_rotary_pos_emb_thd is rotate_packed


def count_bucket_padding(ddp: Any) -> None:
    """Let the distributed optimizer's checkpoint writer find parameters behind a padded bucket.

    It strings the buckets of a buffer together without their padding, and then reads parameters at
    positions that count it: all behind the first bucket are written shifted, their last elements as
    zeros, with a warning at most. A buffer has two buckets when a tied embedding is on several
    pipeline stages. Padding that counts as content costs up to 128 numbers a bucket.
    """
    for buffer in ddp.buffers:
        for bucket in buffer.buckets:
            bucket.numel_unpadded = bucket.grad_data.numel()
        buffer.numel_unpadded = buffer.numel


@functools.cache
def install() -> None:
    """Apply the patches once per process, before the first use of megatron.core."""
    if not has_gpu():
        _stand_in_for_cuda()
    _mend_adam_step()
    _end_writer_with_trainer()
    _offer_packed_rope()
