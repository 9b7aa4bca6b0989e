# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The contract between the trainer and whatever generates for it.

The public methods hold the rules that must be the same everywhere (what is validated, when an
engine may generate, when it is dirty); an engine fills in the underscored hooks.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, Literal

from megacurl.rollout.control import AbortCheck, GenerateControl, ProgressCallback
from megacurl.rollout.errors import EngineStateError, RequestError
from megacurl.rollout.manifest import check_manifest
from megacurl.rollout.stats import EngineStats
from megacurl.rollout.types import (
    MEMORY_TAGS,
    NO_WEIGHTS,
    Capabilities,
    MemoryTag,
    Request,
    Sample,
    TensorMeta,
)
from megacurl.rollout.update import WeightUpdate
from megacurl.rollout.validation import check_token_ids, validate_requests

EngineState = Literal["new", "no_weights", "dirty", "released", "paused", "ready", "closed"]

_CURES: dict[EngineState, str] = {
    "new": "call start() first",
    "no_weights": "it holds no weights yet: send them with open_update() ... commit()",
    "dirty": "a weight update is open or failed: complete a full update first",
    "released": "its memory was given back: call resume_memory() first",
    "paused": "call resume() first",
    "closed": "it was shut down: create a new engine",
}


class RolloutEngine(ABC):
    """Generates samples for prompts and takes new weights from the trainer.

    Life: ``start`` -> (``generate`` | ``score`` | update)* -> ``shutdown``. An update is
    ``pause`` -> ``open_update`` -> ``load``* -> ``commit`` -> ``resume``. Calls may come from any
    thread; they run one at a time, except that ``pause`` makes a running ``generate`` return.
    """

    is_client = False
    """Whether the engines of all ranks speak to the same servers: one leads (sends weights), the
    others follow. It takes the settings ``urls``, ``leader`` and ``transfer_dir``."""

    def __init__(self) -> None:
        self.stats = EngineStats()
        self._lock = threading.RLock()
        self._started = False
        self._closed = False
        self._paused = threading.Event()
        self._generating = False
        self._released: set[MemoryTag] = set()
        self._version = NO_WEIGHTS
        self._dirty = False
        self._open_update: WeightUpdate | None = None

    # ---- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Build the engine; returns when it can take requests or weights."""
        with self._lock:
            if self._closed or self._started:
                raise EngineStateError(
                    "start: the engine was shut down; create a new one"
                    if self._closed
                    else "start: the engine is already started"
                )
            self._version = self._start()
            self._started = True

    def shutdown(self) -> None:
        """Stop and free everything; harmless when repeated."""
        self._paused.set()
        with self._lock:
            if self._open_update is not None:
                self._open_update.abort()
            if self._started and not self._closed:
                self._shutdown()
            self._closed = True

    def attach(self, urls: Sequence[str]) -> None:
        """Work with these servers; before ``start``, of an engine that ``is_client``."""
        raise EngineStateError(f"attach: {type(self).__name__} speaks to no servers")

    def health(self) -> bool:
        """Whether the engine is alive. It may still be paused or dirty: see ``state``."""
        return self._started and not self._closed and self._alive()

    @property
    def lost(self) -> dict[str, str]:
        """Parts of the engine that are out of work until the next update, and why."""
        return {}

    @property
    def state(self) -> EngineState:
        """The first reason why the engine can't generate, or "ready"."""
        if self._closed:
            return "closed"
        if not self._started:
            return "new"
        if self._dirty:
            return "dirty"
        if self._version == NO_WEIGHTS:
            return "no_weights"
        if self._released:
            return "released"
        return "paused" if self._paused.is_set() else "ready"

    # ---- generation -----------------------------------------------------------------------

    def generate(
        self,
        requests: Sequence[Request],
        *,
        deadline: float | None = None,
        should_abort: AbortCheck | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> list[Sample]:
        """Sample every request once for each of its seeds.

        A sample depends on its request, its seed and the weights, not on what else is in the call,
        on the batch it ran in or on the process (up to floating-point rounding of the logits).

        Args:
            requests: checked as a whole before the first token.
            deadline: ``time.monotonic()`` value; after it unfinished samples come back with
                finish_reason "abort" and the tokens they have.
            should_abort: asked between tokens; True acts like the deadline.
            on_progress: called as ``(finished samples, all samples)``.

        Returns:
            One sample for each seed, ordered by request, then by seed.

        Raises:
            RequestError: a request is invalid; nothing was generated.
            EngineStateError: the engine is not ready; the message says what to call.
        """
        with self._lock:
            self._require_ready("generate")
            if self._generating:
                raise EngineStateError("generate: called from within a running generate")
            validate_requests(
                requests,
                vocab_size=self.vocab_size,
                max_model_len=self.max_model_len,
                eos_token_ids=self.eos_token_ids,
            )
            control = GenerateControl(deadline, should_abort, on_progress, self._paused.is_set)
            self._generating = True
            begin = time.perf_counter()
            try:
                samples = self._generate(requests, control)
            finally:
                self._generating = False
            self.stats.record(requests, samples, time.perf_counter() - begin)
            return samples

    def score(
        self,
        prompt_ids: Sequence[Sequence[int]],
        completion_ids: Sequence[Sequence[int]],
        temperature: float = 1.0,
    ) -> list[list[float]]:
        """Log-probabilities of given completions at a temperature, without top-k or top-p.

        Args:
            prompt_ids: one prompt for each completion, none empty.
            completion_ids: completions; an empty one gives an empty list.
            temperature: > 0; the logits are divided by it.

        Returns:
            For each completion, log pi(token t | everything before it) for each of its tokens.

        Raises:
            RequestError: an argument is invalid.
            EngineStateError: the engine is not ready, or none that scores: see ``capabilities``.
        """
        with self._lock:
            if not self.capabilities.scoring:
                raise EngineStateError(
                    f"score: {type(self).__name__} can't score given tokens; use an engine whose"
                    " capabilities have scoring"
                )
            self._require_ready("score")
            if len(prompt_ids) != len(completion_ids):
                raise RequestError(
                    f"score: {len(prompt_ids)} prompts but {len(completion_ids)} completions"
                )
            if not temperature > 0.0:
                raise RequestError(f"score: temperature must be > 0, not {temperature!r}")
            for index, (prompt, completion) in enumerate(
                zip(prompt_ids, completion_ids, strict=True)
            ):
                self._check_scored(index, prompt, completion)
            return self._score(prompt_ids, completion_ids, temperature)

    # ---- pause and memory -----------------------------------------------------------------

    def pause(self) -> None:
        """Stop generating: a running ``generate`` returns partials. Always drops prefix caches."""
        self._require_alive("pause")
        self._paused.set()
        with self._lock:
            self._drop_caches()

    def resume(self) -> None:
        """Allow generation again. Drops prefix caches once more: weights may have changed."""
        with self._lock:
            self._require_alive("resume")
            self._drop_caches()
            self._paused.clear()

    def release_memory(self, tags: Collection[MemoryTag] = MEMORY_TAGS) -> None:
        """Give device memory back while the trainer works; ``generate`` is refused until resumed.

        On a CPU nothing moves, but the same calls are refused, so a mistake shows up there too. An
        engine that does not keep its weights meanwhile is dirty until they are sent again.
        """
        with self._lock:
            self._require_alive("release_memory")
            if self._generating or self._open_update is not None:
                raise EngineStateError("release_memory: a generate or a weight update is running")
            fresh = _known_tags(tags) - self._released
            self._release(fresh)
            self._released |= fresh

    def resume_memory(self, tags: Collection[MemoryTag] = MEMORY_TAGS) -> None:
        """Take back what ``release_memory`` gave away."""
        with self._lock:
            self._require_alive("resume_memory")
            back = _known_tags(tags) & self._released
            self._reacquire(back)
            self._released -= back

    # ---- weights --------------------------------------------------------------------------

    @property
    def weight_version(self) -> int:
        """Version of the live weights; -1 when there are none. Unchanged while dirty."""
        return self._version

    def open_update(self, manifest: Sequence[TensorMeta], version: int) -> WeightUpdate:
        """Begin a full update. From here to a successful commit the engine is dirty.

        Args:
            manifest: everything that will be sent, in sending order.
            version: >= 0; becomes ``weight_version`` at the commit.

        Raises:
            ManifestError: lists all differences from ``self.manifest()``; nothing was changed.
            EngineStateError: not started, weights released, generating, or an update is open.
        """
        with self._lock:
            self._require_alive("open_update")
            if "weights" in self._released:
                raise EngineStateError(
                    'open_update: weights are released; call resume_memory(("weights",)) first'
                )
            if self._generating:
                raise EngineStateError("open_update: the engine is generating; pause() it first")
            if self._open_update is not None:
                raise EngineStateError(
                    f"open_update: the update to version {self._open_update.version} is still"
                    " open; commit() or abort() it first"
                )
            if version < 0:
                raise ValueError(f"version must be >= 0, not {version!r}")
            check_manifest(self.manifest(), manifest)
            self._dirty = True
            self._open_update = self._begin_update(manifest, version)
            return self._open_update

    def follow(self, version: int) -> None:
        """Take note that another rank's engine has brought ``version`` to the shared servers.

        Raises:
            EngineStateError: the servers hold another version, or the engine shares none.
        """
        with self._lock:
            self._require_alive("follow")
            if not self.is_client:
                raise EngineStateError(f"follow: {type(self).__name__} has weights of its own")
            self._dirty = True
            self._follow(version)
            self._version, self._dirty = version, False

    def _follow(self, version: int) -> None:
        """Check that the shared servers hold ``version``; for engines that share some."""
        raise NotImplementedError

    def _update_closed(self, version: int, committed: bool) -> None:
        """An engine passes this, bound to the version, to its ``WeightUpdate`` as ``on_close``."""
        with self._lock:
            self._open_update = None
            if committed:
                self._drop_caches()
                self._version = version
                self._dirty = False
                self.stats.updates += 1

    # ---- what an engine supplies ----------------------------------------------------------

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this engine can do; known before ``start``."""

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Valid token ids are in [0, vocab_size)."""

    @property
    @abstractmethod
    def max_model_len(self) -> int:
        """Prompt plus generated tokens at most."""

    @property
    @abstractmethod
    def eos_token_ids(self) -> tuple[int, ...]:
        """The model's end-of-sequence tokens."""

    @abstractmethod
    def manifest(self) -> list[TensorMeta]:
        """The tensors a full update must bring: Hugging Face names, shapes, dtype of the engine.

        A tied ``lm_head.weight`` is listed only by an engine that keeps its own copy of it.
        """

    @abstractmethod
    def digest(self) -> str:
        """``combine_digests`` of ``tensor_digest`` over the live weights named in the manifest."""

    @abstractmethod
    def _start(self) -> int:
        """Build; return the version of the weights loaded, or ``NO_WEIGHTS``."""

    @abstractmethod
    def _shutdown(self) -> None: ...

    @abstractmethod
    def _alive(self) -> bool: ...

    @abstractmethod
    def _generate(self, requests: Sequence[Request], control: GenerateControl) -> list[Sample]: ...

    def _score(
        self,
        prompt_ids: Sequence[Sequence[int]],
        completion_ids: Sequence[Sequence[int]],
        temperature: float,
    ) -> list[list[float]]:
        """For an engine that has ``scoring`` among its capabilities."""
        raise NotImplementedError

    @abstractmethod
    def _drop_caches(self) -> None: ...

    @abstractmethod
    def _release(self, tags: set[MemoryTag]) -> None: ...

    @abstractmethod
    def _reacquire(self, tags: set[MemoryTag]) -> None: ...

    @abstractmethod
    def _begin_update(self, manifest: Sequence[TensorMeta], version: int) -> WeightUpdate: ...

    # ---- counters and checks --------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Counters since the start of the run, and the version of the weights."""
        return {**self.stats.metrics(), "weight_version": float(self._version)}

    def state_dict(self) -> dict[str, Any]:
        """Counters. Weights are not in it: after a resume the trainer sends them."""
        return self.stats.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the counters."""
        self.stats.load_state_dict(state)

    def _require_alive(self, call: str) -> None:
        state = self.state
        if state in ("new", "closed"):
            raise EngineStateError(f"{call}: the engine is {state!r}; {_CURES[state]}")

    def _require_ready(self, call: str) -> None:
        state = self.state
        if state != "ready":
            raise EngineStateError(f"{call}: the engine is {state!r}; {_CURES[state]}")

    def _check_scored(self, index: int, prompt: Sequence[int], completion: Sequence[int]) -> None:
        if not prompt:
            raise RequestError(f"score: prompt_ids[{index}] is empty")
        check_token_ids(f"score: prompt_ids[{index}]", prompt, self.vocab_size)
        check_token_ids(f"score: completion_ids[{index}]", completion, self.vocab_size)
        total = len(prompt) + len(completion)
        if total > self.max_model_len:
            raise RequestError(
                f"score: sequence {index} has {total} tokens, max_model_len={self.max_model_len}"
            )


def _known_tags(tags: Collection[MemoryTag]) -> set[MemoryTag]:
    unknown = set(tags) - set(MEMORY_TAGS)
    if unknown:
        raise ValueError(f"unknown memory tags {sorted(unknown)}; known: {list(MEMORY_TAGS)}")
    return set(tags)
