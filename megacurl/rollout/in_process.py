# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What engines in the trainer's own process share: where they run, and what config.json says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PretrainedConfig

from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.hf_model import end_of_sequence_ids, read_config
from megacurl.rollout.types import NO_WEIGHTS


class InProcessEngine(RolloutEngine):
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

    _max_model_len: int

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
        super().__init__()
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"dtype must be float32, bfloat16 or float16, not {dtype!r}")
        if load_weights and initial_version < 0:
            raise ValueError(f"initial_version must be >= 0, not {initial_version!r}")
        self._load_weights = load_weights
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._device = torch.device(device)
        self._first_version = initial_version if load_weights else NO_WEIGHTS
        self._config: Any = read_config(model, load_weights)
        self._eos = (
            tuple(eos_token_ids)
            if eos_token_ids is not None
            else end_of_sequence_ids(model, self._config)
        )

    @property
    def vocab_size(self) -> int:
        """Rows of the embedding."""
        return int(self._config.vocab_size)

    @property
    def max_model_len(self) -> int:
        """Prompt plus generated tokens at most."""
        return self._max_model_len

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The model's end-of-sequence tokens."""
        return self._eos
