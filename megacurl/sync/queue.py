# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What one engine wants of some trainer ranks, in an order, so that it can be cut into shares."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from megacurl.sync.boxes import Overlap


class Item(NamedTuple):
    """A box of parameter number ``parameter``, for an engine rank's parameter number ``target``."""

    parameter: int
    target: int
    engine_rank: int
    overlap: Overlap

    @property
    def elements(self) -> int:
        return self.overlap.box.elements


class Queue:
    """Items behind one another. A position counts elements; cuts lie between rows of a box."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = tuple(items)
        self._starts = [0, *accumulate(item.elements for item in self.items)]

    @property
    def elements(self) -> int:
        return self._starts[-1]

    def snap(self, position: int) -> int:
        """The cut that is nearest to ``position``."""
        if position >= self.elements:
            return self.elements
        index = bisect_right(self._starts, position) - 1
        start, columns = self._starts[index], self.items[index].overlap.box.columns
        return start + (position - start + columns // 2) // columns * columns

    def between(self, start: int, stop: int) -> Iterator[Item]:
        """The items, or rows of them, between two cuts."""
        for index in range(bisect_right(self._starts, start) - 1, len(self.items)):
            begin, item = self._starts[index], self.items[index]
            if begin >= stop:
                return
            first, last = max(start, begin) - begin, min(stop, self._starts[index + 1]) - begin
            if (first, last) == (0, item.elements):
                yield item
            else:
                columns = item.overlap.box.columns
                part = item.overlap.lines(first // columns, last // columns)
                yield item._replace(overlap=part)
