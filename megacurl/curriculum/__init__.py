# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""How much each question counts: accuracy posteriors, phase of training, difficulty weights."""
