# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Forward and backward over micro-batches through Megatron's pipeline schedules.

Losses are *sums* here: a loss function divides by the global denominator itself, and neither the
number of micro-batches nor the data parallel size scales anything. ``calculate_per_token_loss``
in the TransformerConfig asks Megatron for that, and ``finalize_sum`` keeps it from dividing again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.distributed import finalize_model_grads
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch import Tensor

from megacurl.megatron import cpu
from megacurl.megatron.packing import PackedBatch

Extract = Callable[[Tensor, PackedBatch], Any]
"""(model output, batch) -> what to keep of it; called on the last stage only."""
Loss = Callable[[Tensor, PackedBatch, int], tuple[Tensor, Any]]
"""(model output, batch, micro-batch number) -> (loss, statistics); on the last stage only."""


def finalize_sum(model: list[Any], num_tokens: Tensor | None = None, **kwargs: Any) -> None:
    """Reduce gradients over DP, SP and tied embeddings, without Megatron's division by tokens."""
    finalize_model_grads(model, None, **kwargs)


def _forward(model: Any, batch: PackedBatch) -> Tensor:
    output: Tensor = model(
        input_ids=batch.tokens,
        position_ids=batch.position_ids,
        attention_mask=None,
        packed_seq_params=batch.sequences,
    )
    return output


def _run(
    chunks: Sequence[Any], batches: Sequence[PackedBatch], step: Any, **options: Any
) -> list[Any]:
    schedule = get_forward_backward_func(
        pp_size=parallel_state.get_pipeline_model_parallel_world_size(),
        vp_size=len(chunks) if len(chunks) > 1 else None,
    )
    results: list[Any] = schedule(
        forward_step_func=step,
        data_iterator=[iter(enumerate(batches)) for _ in chunks],
        model=list(chunks),
        num_microbatches=len(batches),
        seq_length=1,  # every batch announces its own length (variable_seq_lengths)
        micro_batch_size=1,
        **options,
    )
    return results


@cpu.on_megatron_device
def forward_only(
    chunks: Sequence[Any], batches: Sequence[PackedBatch], extract: Extract
) -> list[Any]:
    """``extract`` of every batch, in order, on the last stage; an empty list on the others.

    ``chunks``: this rank's modules, as ``Network.chunks`` or wrapped for gradients.
    """

    def step(iterator: Any, chunk: Any) -> tuple[Tensor, Any]:
        _, batch = next(iterator)

        def keep(output: Tensor, non_loss_data: bool = False) -> Any:
            return extract(output, batch)

        return _forward(chunk, batch), keep

    with torch.no_grad():
        return _run(chunks, batches, step, forward_only=True, collect_non_loss_data=True)


@cpu.on_megatron_device
def forward_backward(
    chunks: Sequence[Any], batches: Sequence[PackedBatch], loss: Loss
) -> list[Any]:
    """Accumulate gradients of the summed losses; statistics of every batch on the last stage."""

    def step(iterator: Any, chunk: Any) -> tuple[Tensor, Any]:
        number, batch = next(iterator)

        def evaluate(output: Tensor) -> tuple[Tensor, Tensor, Any]:
            value, statistics = loss(output, batch, number)
            return value, torch.zeros([], dtype=torch.int, device=value.device), statistics

        return _forward(chunk, batch), evaluate

    return _run(chunks, batches, step, forward_only=False)
