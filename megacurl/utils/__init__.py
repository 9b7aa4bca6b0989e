# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Small helpers that know nothing of training: atomic files, name hints."""
