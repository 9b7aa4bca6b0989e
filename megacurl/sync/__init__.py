# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Weights of the trainer, gathered from its TP and PP ranks, handed to HF files and engines."""
