# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A plan carried out by plain copies: for shards and engine tensors that one process can reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torch import Tensor

from megacurl.sync.plan import Transfer


def copy_transfers(
    transfers: Iterable[Transfer],
    held: Callable[[int, str], Tensor],
    wanted: Callable[[int, int, str], Tensor],
) -> None:
    """Copy every box to its place; dtypes and devices may differ.

    Args:
        transfers: those of a plan, or a part of them.
        held: trainer rank, Megatron name -> the rank's shard.
        wanted: replica, engine rank, engine name -> the shard to write, contiguous.
    """
    for transfer in transfers:
        _, _, rows, columns = transfer.box
        row, column = transfer.source_at
        source = _matrix(held(transfer.sender, transfer.source))
        part = source[row : row + rows, column : column + columns]
        row, column = transfer.target_at
        for name in transfer.targets:
            target = _matrix(wanted(transfer.replica, transfer.engine_rank, name))
            target[row : row + rows, column : column + columns].copy_(part)


def _matrix(tensor: Tensor) -> Tensor:
    """A view with two dimensions; a vector becomes one column."""
    return tensor.unsqueeze(1) if tensor.dim() == 1 else tensor
