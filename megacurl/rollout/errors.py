# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What can go wrong in a rollout, one class for each thing the caller would do differently."""

from __future__ import annotations


class RolloutError(Exception):
    """Base of every error raised by an engine on purpose."""


class RequestError(RolloutError, ValueError):
    """A request can't be served as written; nothing was generated."""


class ManifestError(RolloutError, ValueError):
    """The trainer's tensors are not the ones the engine wants; no weight was touched."""


class UpdateError(RolloutError, RuntimeError):
    """A weight update broke the protocol; the engine is dirty until a full update succeeds."""


class EngineStateError(RolloutError, RuntimeError):
    """The call is not allowed in the engine's present state (not started, paused, dirty, ...)."""
