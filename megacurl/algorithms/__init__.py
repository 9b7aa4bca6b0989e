# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantages, weights and losses: pure functions on packed tensors, free of process groups."""
