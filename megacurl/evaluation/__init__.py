# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Scores on question sets: estimators, eval sets, stored results and before/after tables."""
