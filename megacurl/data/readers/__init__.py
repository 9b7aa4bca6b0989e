# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Readers of prompt files, one module a format; a new module here is found by itself."""

from __future__ import annotations

from megacurl.data.readers.base import Columns, RawRow, Reader, get_reader, register_reader

__all__ = ["Columns", "RawRow", "Reader", "get_reader", "register_reader"]
