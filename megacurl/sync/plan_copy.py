# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A plan carried out on tensors: by plain copies in one process, or packed into messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from megacurl.sync.messages import Incoming, Message
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
        part = _box(held(transfer.sender, transfer.source), *transfer.source_at, rows, columns)
        for name in transfer.targets:
            target = wanted(transfer.replica, transfer.engine_rank, name)
            _box(target, *transfer.target_at, rows, columns).copy_(part)


def pack(message: Message, held: Callable[[str], Tensor], dtype: torch.dtype) -> Tensor:
    """The content of a message, one dimension, in memory of its own.

    Args:
        message: one of this rank.
        held: Megatron name -> the rank's shard.
        dtype: of the elements on their way.
    """
    boxes = [
        _box(held(t.source), *t.source_at, t.box.rows, t.box.columns) for t in message.transfers
    ]
    sizes = [box.numel() for box in boxes]
    content = torch.empty(sum(sizes), dtype=dtype, device=boxes[0].device)
    for box, place in zip(boxes, content.split(sizes), strict=True):
        place.view(box.shape).copy_(box)
    return content


def unpack(message: Incoming, content: Tensor, wanted: Callable[[str], Tensor]) -> None:
    """Write the content of a message to its places.

    Args:
        message: what was announced.
        content: what came, one dimension.
        wanted: engine name -> the rank's shard.

    Raises:
        ValueError: if more or less came than was announced; nothing is written then.
    """
    if content.numel() != message.elements:
        raise ValueError(
            f"bucket {message.bucket} from trainer rank {message.sender} has {content.numel()} "
            f"elements, {message.elements} were announced; the two sides follow different plans"
        )
    parts = content.split([part.rows * part.columns for part in message.slices])
    for (names, row, column, rows, columns), part in zip(message.slices, parts, strict=True):
        for name in names:
            _box(wanted(name), row, column, rows, columns).copy_(part.view(rows, columns))


def _box(tensor: Tensor, row: int, column: int, rows: int, columns: int) -> Tensor:
    """A view of a part of a matrix, or of a vector as one column."""
    return _matrix(tensor)[row : row + rows, column : column + columns]


def _matrix(tensor: Tensor) -> Tensor:
    """A view with two dimensions; a vector becomes one column."""
    return tensor.unsqueeze(1) if tensor.dim() == 1 else tensor
