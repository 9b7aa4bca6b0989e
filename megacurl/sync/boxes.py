# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Where two shards of the same HF tensors overlap: boxes of rows and columns, no tensor.

A vector is a matrix of one column, so that biases and norms need no case of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from megacurl.models.weight_map import Placement, Shape


class Box(NamedTuple):
    """A part of an HF tensor: its first row and column, and how many there are."""

    row: int
    column: int
    rows: int
    columns: int

    @property
    def elements(self) -> int:
        return self.rows * self.columns


class Block(NamedTuple):
    """A box of the HF tensor number ``source``, and the row and column of its corner in a shard."""

    source: int
    box: Box
    at: tuple[int, int]


class Overlap(NamedTuple):
    """A box that one shard holds and another wants, and the place of its corner in either."""

    source: int
    box: Box
    held_at: tuple[int, int]
    wanted_at: tuple[int, int]

    def lines(self, start: int, stop: int) -> Overlap:
        """The rows ``start:stop`` of the box."""
        box = Box(self.box.row + start, self.box.column, stop - start, self.box.columns)
        held, wanted = self.held_at, self.wanted_at
        return Overlap(self.source, box, (held[0] + start, held[1]), (wanted[0] + start, wanted[1]))


def matrix_shape(shape: Shape) -> tuple[int, int]:
    """Rows and columns of a tensor of one or two dimensions."""
    return (shape[0], 1) if len(shape) == 1 else (shape[0], shape[1])


def shard_blocks(
    placement: Placement, shapes: Sequence[Shape], tp_rank: int, tp_size: int
) -> list[Block]:
    """The blocks of a rank's shard; padding is in none of them.

    Args:
        placement: how ranks share the tensors.
        shapes: of the HF tensors.
        tp_rank: the rank.
        tp_size: their number.
    """
    blocks, offset = [], 0
    for source, start, end in placement.pieces(tp_rank, tp_size):
        rows, columns = matrix_shape(shapes[source])
        if placement.partition_dim == 1:
            stop = columns if end is None else end
            box, at = Box(0, start, rows, stop - start), (0, offset)
        else:
            stop = rows if end is None else end
            box, at = Box(start, 0, stop - start, columns), (offset, 0)
        if stop > start:
            blocks.append(Block(source, box, at))
        offset += stop - start
    return blocks


def overlaps(held: Sequence[Block], wanted: Sequence[Block]) -> list[Overlap]:
    """What ``held`` can give of ``wanted``, in the order of the wanted shard."""
    found = []
    for want in wanted:
        for have in held:
            if have.source == want.source:
                found += _overlap(have, want)
    return found


def _overlap(have: Block, want: Block) -> list[Overlap]:
    a, b = have.box, want.box
    row, column = max(a.row, b.row), max(a.column, b.column)
    rows = min(a.row + a.rows, b.row + b.rows) - row
    columns = min(a.column + a.columns, b.column + b.columns) - column
    if rows <= 0 or columns <= 0:
        return []
    return [
        Overlap(
            have.source,
            Box(row, column, rows, columns),
            (have.at[0] + row - a.row, have.at[1] + column - a.column),
            (want.at[0] + row - b.row, want.at[1] + column - b.column),
        )
    ]
