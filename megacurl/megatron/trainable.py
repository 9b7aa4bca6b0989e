# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A model with its gradients, optimizer and schedule on this rank: what actor and critic share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig as MegatronOptimizerConfig
from megatron.core.optimizer import get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from torch import Tensor

from megacurl.config.schema import OptimizerConfig, ParallelConfig
from megacurl.megatron import cpu
from megacurl.megatron.offload import Offloadable, storage_key
from megacurl.megatron.packing import PackedBatch
from megacurl.megatron.pipeline import Extract, Loss, forward_backward, forward_only
from megacurl.models.network import Network


class Trainable:
    """Forward passes and optimizer steps over packed micro-batches."""

    @cpu.on_megatron_device
    def __init__(
        self,
        name: str,
        network: Network,
        config: OptimizerConfig,
        parallel: ParallelConfig,
        *,
        lr: float,
        total_steps: int,
    ) -> None:
        """
        Args:
            name: "actor" or "critic", for error messages.
            network: this rank's part of the model.
            config: AdamW, schedule, clipping.
            parallel: whether optimizer state is sharded over DP.
            lr: peak learning rate.
            total_steps: optimizer steps of the whole run, over which the rate decays.
        """
        self.name, self.network, self.config = name, network, config
        self.chunks = [
            DistributedDataParallel(
                chunk.config,
                DistributedDataParallelConfig(
                    grad_reduce_in_fp32=True,
                    use_distributed_optimizer=parallel.use_distributed_optimizer,
                ),
                chunk,
            )
            for chunk in network.chunks
        ]
        for chunk in self.chunks:
            cpu.count_bucket_padding(chunk)
        self.optimizer = get_megatron_optimizer(
            MegatronOptimizerConfig(
                optimizer="adam",
                lr=lr,
                min_lr=min(config.min_lr, lr),
                weight_decay=config.weight_decay,
                adam_beta1=config.adam_beta1,
                adam_beta2=config.adam_beta2,
                adam_eps=config.adam_eps,
                clip_grad=config.clip_grad or math.inf,  # 0 would also turn off the norm we report
                bf16=network.config.bf16,
                params_dtype=network.config.params_dtype,
                use_distributed_optimizer=parallel.use_distributed_optimizer,
            ),
            self.chunks,
        )
        decay_steps = config.lr_decay_iters or total_steps
        self.scheduler = OptimizerParamScheduler(
            self.optimizer,
            init_lr=0.0,
            max_lr=lr,
            min_lr=min(config.min_lr, lr),
            lr_warmup_steps=config.lr_warmup_iters,
            lr_decay_steps=max(decay_steps, config.lr_warmup_iters + 1),
            lr_decay_style=config.lr_decay_style,
            start_wd=config.weight_decay,
            end_wd=config.weight_decay,
            wd_incr_steps=1,
            wd_incr_style="constant",
        )
        self._gradients = Offloadable(
            lambda: (buffer.grad_data for chunk in self.chunks for buffer in chunk.buffers),
            enabled=parallel.offload == "all",
            keep_content=False,
        )
        self._optimizer_state = Offloadable(
            self._optimizer_tensors, enabled=parallel.offload != "none"
        )
        with self.in_use():
            pass  # from here on it is on the device only while it is used

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Weights, gradients and optimizer state are on the device inside; see ``--offload``."""
        with self.network.weights.in_use(), self._gradients.in_use():
            with self._optimizer_state.in_use():
                yield
            self.optimizer.zero_grad()  # gradients of offloaded memory must not stay behind

    def _optimizer_tensors(self) -> Iterator[Tensor]:
        """Moments and fp32 copies of the weights; what shares memory with weights is not here."""
        weights = {storage_key(p) for chunk in self.chunks for p in chunk.parameters()}
        for optimizer in inner_optimizers(self.optimizer):
            mains = [p for group in optimizer.param_groups for p in group["params"]]
            state = [t for entry in optimizer.state.values() for t in entry.values()]
            for tensor in [*mains, *state]:
                if isinstance(tensor, Tensor) and storage_key(tensor) not in weights:
                    yield tensor.detach()

    def forward(self, batches: Sequence[PackedBatch], extract: Extract) -> list[Any]:
        """See ``pipeline.forward_only``."""
        with self.network.weights.in_use():
            return forward_only(self.chunks, batches, extract)

    def accumulate(self, batches: Sequence[PackedBatch], loss: Loss) -> list[Any]:
        """Gradients of the summed losses, in place of older ones; see ``forward_backward``.

        Call it and ``apply`` inside ``in_use``.
        """
        for chunk in self.chunks:
            chunk.zero_grad_buffer()
        self.optimizer.zero_grad()
        return forward_backward(self.chunks, batches, loss)

    @cpu.on_megatron_device
    def apply(self) -> float:
        """One optimizer step; returns the global gradient norm before clipping.

        Raises:
            FloatingPointError: if the norm is not finite; the weights are then unusable and the
                run must go on from its last checkpoint.
        """
        self.scheduler.step(increment=1)
        _, grad_norm, _ = self.optimizer.step()
        if not math.isfinite(grad_norm):
            raise FloatingPointError(
                f"the {self.name}'s gradient norm is {grad_norm}: resume from the last checkpoint "
                "with a lower learning rate, or look for non-finite rewards or log-probs"
            )
        return float(grad_norm)

    @property
    def steps(self) -> int:
        """Optimizer steps so far: the position in the schedule."""
        steps: int = self.scheduler.num_steps
        return steps

    def resume_at(self, steps: int) -> None:
        """Go on after ``steps`` optimizer steps with the settings of *this* run.

        Loading the optimizer also brings back the rates of the run that saved it; a changed
        ``--lr`` would be ignored without a word.
        """
        for group in self.optimizer.param_groups:
            group["max_lr"], group["min_lr"] = self.scheduler.max_lr, self.scheduler.min_lr
            group["betas"] = (self.config.adam_beta1, self.config.adam_beta2)
            group["eps"] = self.config.adam_eps
        self.scheduler.num_steps = steps
        self.scheduler.step(increment=0)

    @property
    def lr(self) -> float:
        """Learning rate of the last step."""
        rate: float = self.optimizer.param_groups[0]["lr"]
        return rate


def inner_optimizers(optimizer: Any) -> list[Any]:
    """The torch optimizers behind a Megatron optimizer."""
    chained = getattr(optimizer, "chained_optimizers", [optimizer])
    return [part.optimizer for part in chained]
