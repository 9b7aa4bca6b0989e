# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The tokenizer of a model folder, or a message that says what the folder lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from megacurl.config.errors import ConfigError

_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
_FIX = "copy the tokenizer's files (tokenizer.json, tokenizer_config.json) of the model into it"


def load_tokenizer(folder: str | Path, flag: str = "--hf-checkpoint") -> Any:
    """The transformers tokenizer in ``folder``. Raises ConfigError when there is none or it fails.

    transformers alone would make an empty tokenizer for a folder that has none.
    """
    from transformers import AutoTokenizer

    if not any((Path(folder) / name).is_file() for name in _FILES):
        raise ConfigError(f"{flag} {folder} has no tokenizer; {_FIX}")
    try:
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"{flag} {folder}: its tokenizer cannot be read ({reason}); {_FIX} again"
        ) from error
