# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Engines in processes of their own, reached over HTTP: what they share, whatever their make."""
