# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which questions a step trains on, decided before, during and after their rollouts."""
