# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Advantage estimators, one a file: gae, grpo, rloo."""
