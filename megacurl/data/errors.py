# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The error of everything that reads prompt files."""

from __future__ import annotations

from megacurl.config.errors import ConfigError


class DataError(ConfigError):
    """A prompt file, or a row of it, cannot be used; the message names place, value and fix."""


def shown(value: object, limit: int = 80) -> str:
    """`repr` of a value, cut to `limit` characters so that an error stays one readable line."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
