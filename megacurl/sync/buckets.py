# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Cutting a model into buckets that are sent one after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def cut_into_buckets(
    items: Iterable[T],
    size: Callable[[T], int],
    limit: int,
    kind: Callable[[T], Hashable] = lambda _: None,
) -> Iterator[tuple[T, ...]]:
    """Neighbours together while their sizes sum up to no more than ``limit``; the order stays.

    An item above the limit is a bucket of its own. A bucket holds items of one ``kind``.
    """
    bucket: list[T] = []
    total = 0
    for item in items:
        if bucket and (total + size(item) > limit or kind(item) != kind(bucket[0])):
            yield tuple(bucket)
            bucket, total = [], 0
        bucket.append(item)
        total += size(item)
    if bucket:
        yield tuple(bucket)
