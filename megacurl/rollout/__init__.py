# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Rollouts: a contract for engines, one file an engine, and the proof of what weights they hold."""

from __future__ import annotations

from megacurl.rollout.digest import combine_digests, tensor_digest
from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.errors import (
    EngineStateError,
    ManifestError,
    RequestError,
    RolloutError,
    UpdateError,
)
from megacurl.rollout.registry import create_engine, engine_names, register_engine
from megacurl.rollout.seeds import sample_seed
from megacurl.rollout.types import Capabilities, Request, Sample, SamplingSpec, TensorMeta
from megacurl.rollout.update import WeightUpdate

__all__ = [
    "Capabilities",
    "EngineStateError",
    "ManifestError",
    "Request",
    "RequestError",
    "RolloutEngine",
    "RolloutError",
    "Sample",
    "SamplingSpec",
    "TensorMeta",
    "UpdateError",
    "WeightUpdate",
    "combine_digests",
    "create_engine",
    "engine_names",
    "register_engine",
    "sample_seed",
    "tensor_digest",
]
