# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Prompt sets: reading, checking, encoding, and the resumable cursor over them."""

from __future__ import annotations

from megacurl.data.chat import EncodedPrompts, encode_prompts
from megacurl.data.cursor import PromptCursor
from megacurl.data.errors import DataError
from megacurl.data.inspect import Inspection, format_inspection, inspect_file
from megacurl.data.load import PromptSet, load_prompt_set, load_prompts
from megacurl.data.prompt import Message, Prompt, fingerprint
from megacurl.data.rows import DAPO_INSTRUCTION

__all__ = [
    "DAPO_INSTRUCTION",
    "DataError",
    "EncodedPrompts",
    "Inspection",
    "Message",
    "Prompt",
    "PromptCursor",
    "PromptSet",
    "encode_prompts",
    "fingerprint",
    "format_inspection",
    "inspect_file",
    "load_prompt_set",
    "load_prompts",
]
