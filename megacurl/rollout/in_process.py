# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What engines in the trainer's own process share: where they run, and what they start from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import PretrainedConfig

from megacurl.rollout.configured import ConfiguredEngine
from megacurl.rollout.types import NO_WEIGHTS


class InProcessEngine(ConfiguredEngine):
    """An engine that reads a Hugging Face model and runs on one device of this process.

    Args:
        model: folder in Hugging Face format, or a config (then weights come by an update).
        load_weights: whether the engine starts with the folder's weights.
        dtype: "float32", "bfloat16" or "float16".
        device: "cpu" or "cuda:<index>".
        eos_token_ids: default: those of generation_config.json, else of config.json.
        initial_version: version of weights loaded from the folder.

    Raises:
        ValueError: an unknown dtype or a negative version.
    """

    def __init__(
        self,
        model: str | Path | PretrainedConfig,
        *,
        load_weights: bool,
        dtype: str,
        device: str | torch.device,
        eos_token_ids: Sequence[int] | None,
        initial_version: int,
    ) -> None:
        super().__init__(model, load_weights=load_weights, dtype=dtype, eos_token_ids=eos_token_ids)
        if load_weights and initial_version < 0:
            raise ValueError(f"initial_version must be >= 0, not {initial_version!r}")
        self._load_weights = load_weights
        self._device = torch.device(device)
        self._first_version = initial_version if load_weights else NO_WEIGHTS
