# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Deals prompts out epoch after epoch, and can be resumed at any point."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from megacurl.data.errors import DataError
from megacurl.data.prompt import Prompt, fingerprint

Item = TypeVar("Item", bound="Prompt | tuple[Prompt, Any]")


class PromptCursor(Generic[Item]):
    """Serves each item exactly once an epoch; every epoch has its own order.

    items: Prompts, or (Prompt, anything) pairs such as `EncodedPrompts.items`.
    seed, shuffle: the order of epoch e depends on (seed, e, position) alone, through a hash, so
        no random generator is shared with anyone and no library version changes the order.
    """

    def __init__(self, items: Sequence[Item], *, seed: int, shuffle: bool = True) -> None:
        if not items:
            raise DataError("a prompt cursor needs at least one prompt; the list is empty")
        self._items = items
        self._seed = seed
        self._shuffle = shuffle
        self._fingerprint = fingerprint(_prompt_of(item) for item in items)
        self._epoch = 0
        self._offset = 0
        # Items of this epoch that were passed over because the batch already held them.
        self._deferred: list[int] = []
        self._order = self._permutation(0)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def epoch(self) -> int:
        """Epoch of the next item: the number of complete passes made so far."""
        return self._epoch

    def next(self, n: int) -> list[Item]:
        """The next n items, all different. The batch runs on into the next epoch where needed.

        Raises DataError when n is below 1 or above the number of items.
        """
        if not 1 <= n <= len(self._items):
            raise DataError(
                f"cannot take a batch of {n} different prompts out of {len(self._items)}; "
                f"ask for 1 to {len(self._items)}"
            )
        batch: list[int] = []
        taken: set[int] = set()
        while len(batch) < n:
            index = self._take(taken)
            batch.append(index)
            taken.add(index)
        return [self._items[index] for index in batch]

    def state_dict(self) -> dict[str, Any]:
        """JSON-friendly position, with what is needed to refuse another data set."""
        return {
            "seed": self._seed,
            "shuffle": self._shuffle,
            "size": len(self._items),
            "fingerprint": self._fingerprint,
            "epoch": self._epoch,
            "offset": self._offset,
            "deferred": list(self._deferred),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken. The cursor is unchanged when this raises.

        Raises DataError when items, seed or shuffle differ from those of the saved run.
        """
        mine = self.state_dict()
        missing = sorted(mine.keys() - state.keys())
        if missing:
            raise DataError(f"cursor state lacks {missing}; it was not written by PromptCursor")
        for name, fix in (
            ("size", "resume with the same prompt file and filters"),
            ("fingerprint", "a prompt, an answer or their order changed; use the same file"),
            ("seed", "resume with the same data seed"),
            ("shuffle", "resume with the same shuffle setting"),
        ):
            if state[name] != mine[name]:
                raise DataError(
                    f"cursor state has {name} {state[name]!r}, this run has {mine[name]!r}: {fix}"
                )
        epoch, offset, deferred = state["epoch"], state["offset"], list(state["deferred"])
        size = len(self._items)
        if epoch < 0 or not 0 <= offset <= size or any(not 0 <= i < size for i in deferred):
            raise DataError(f"cursor state is out of range: {epoch=}, {offset=}, {deferred=}")
        self._epoch, self._offset, self._deferred = epoch, offset, deferred
        self._order = self._permutation(epoch)

    def metrics(self) -> dict[str, float]:
        """data/epoch: number of the pass that the next item belongs to, from 0."""
        return {"data/epoch": float(self._epoch)}

    def _take(self, taken: set[int]) -> int:
        index = self._pop(taken)
        # The epoch is closed as soon as it is empty, so that a state saved exactly at the
        # boundary already stands at the start of the next epoch.
        if self._offset == len(self._items) and not self._deferred:
            self._epoch += 1
            self._offset = 0
            self._order = self._permutation(self._epoch)
        return index

    def _pop(self, taken: set[int]) -> int:
        for position, index in enumerate(self._deferred):
            if index not in taken:
                return self._deferred.pop(position)
        while True:
            index = self._order[self._offset]
            self._offset += 1
            if index not in taken:
                return index
            self._deferred.append(index)

    def _permutation(self, epoch: int) -> Sequence[int]:
        size = len(self._items)
        if not self._shuffle:
            return range(size)
        key = hashlib.blake2b(f"{self._seed}/{epoch}".encode(), digest_size=32).digest()

        def rank(index: int) -> bytes:
            return hashlib.blake2b(index.to_bytes(8, "little"), key=key, digest_size=16).digest()

        return sorted(range(size), key=rank)


def _prompt_of(item: Prompt | tuple[Prompt, Any]) -> Prompt:
    return item if isinstance(item, Prompt) else item[0]
