# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One weight update: open, load every tensor exactly once, commit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType

from torch import Tensor

from megacurl.rollout.errors import UpdateError
from megacurl.rollout.types import TensorMeta

_SHOWN = 8


class WeightUpdate(ABC):
    """Protocol of an update, the same for every engine; an engine supplies the three hooks.

    The engine is dirty from ``open_update`` until ``commit`` returns. Any error closes the update
    and leaves the engine dirty: half of two models must never generate. As a context manager it
    aborts when the body raises or forgets to commit.
    """

    def __init__(
        self,
        manifest: Sequence[TensorMeta],
        version: int,
        on_close: Callable[[bool], None],
    ) -> None:
        """Args:
        manifest: checked manifest, in the order the trainer will send.
        version: version the engine holds after the commit.
        on_close: called once with True after a commit, with False after a failure or abort.
        """
        self.version = version
        self._pending = {meta.name: meta for meta in manifest}
        self._arrived: set[str] = set()
        self._on_close = on_close
        self._closed = False

    def load(self, named_tensors: Sequence[tuple[str, Tensor]]) -> None:
        """Take a bucket. The tensors may be reused by the caller after the call returns.

        Raises:
            UpdateError: a name that is unknown or arrived before, or a tensor that differs from
                its manifest entry. The whole bucket is checked before any of it is written.
        """
        self._require_open("load")
        try:
            self._check_bucket(named_tensors)
            self._write(named_tensors)
        except BaseException:
            self._fail()
            raise
        for name, _ in named_tensors:
            self._arrived.add(name)
            del self._pending[name]

    def commit(self) -> None:
        """Make the new weights live under the new version.

        Raises:
            UpdateError: tensors of the manifest have not arrived.
        """
        self._require_open("commit")
        try:
            if self._pending:
                names = list(self._pending)
                raise UpdateError(
                    f"update to version {self.version}: {len(names)} tensors never arrived:"
                    f" {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''};"
                    " the engine stays dirty, send the full model again"
                )
            self._finish()
        except BaseException:
            self._fail()
            raise
        self._closed = True
        self._on_close(True)

    def abort(self) -> None:
        """Give up; the engine stays dirty. Harmless on a closed update."""
        if not self._closed:
            self._fail()

    def __enter__(self) -> WeightUpdate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort()

    @abstractmethod
    def _write(self, named_tensors: Sequence[tuple[str, Tensor]]) -> None:
        """Bring checked tensors to the engine; must not keep references to them."""

    @abstractmethod
    def _finish(self) -> None:
        """All tensors are there: make them live and drop every cache made with the old ones."""

    @abstractmethod
    def _rollback(self) -> None:
        """Leave the transfer so that a later update can start; must not raise."""

    def _fail(self) -> None:
        self._closed = True
        self._rollback()
        self._on_close(False)

    def _require_open(self, call: str) -> None:
        if self._closed:
            raise UpdateError(
                f"{call}: the update to version {self.version} is closed; open a new one"
            )

    def _check_bucket(self, named_tensors: Sequence[tuple[str, Tensor]]) -> None:
        in_bucket: set[str] = set()
        for name, tensor in named_tensors:
            if name in self._arrived or name in in_bucket:
                raise UpdateError(f"tensor {name} arrived twice in one update")
            expected = self._pending.get(name)
            if expected is None:
                raise UpdateError(f"tensor {name} is not in the manifest of this update")
            actual = TensorMeta.of(name, tensor)
            if actual != expected:
                raise UpdateError(
                    f"tensor {name} is {actual.dtype}{actual.shape}, but the manifest says"
                    f" {expected.dtype}{expected.shape}"
                )
            in_bucket.add(name)
