# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What every engine knows of its model from the Hugging Face config."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PretrainedConfig

from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.hf_model import end_of_sequence_ids, read_config


class ConfiguredEngine(RolloutEngine):
    """An engine of a Hugging Face model.

    Args:
        model: folder in Hugging Face format, or a config.
        load_weights: whether the folder's weights are wanted.
        dtype: "float32", "bfloat16" or "float16".
        eos_token_ids: default: those of generation_config.json, else of config.json.

    Raises:
        ValueError: an unknown dtype.
    """

    _max_model_len: int

    def __init__(
        self,
        model: str | Path | PretrainedConfig,
        *,
        load_weights: bool,
        dtype: str,
        eos_token_ids: Sequence[int] | None,
    ) -> None:
        super().__init__()
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"dtype must be float32, bfloat16 or float16, not {dtype!r}")
        self._dtype: torch.dtype = getattr(torch, dtype)
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
