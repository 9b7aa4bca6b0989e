# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Settings: schema, presets, YAML and flags, checks, and the layout they give. Needs no torch."""
