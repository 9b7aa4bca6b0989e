# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""MegaCURL: a Megatron-based trainer for value-based reinforcement learning of language models."""

__version__ = "0.1.0"
