# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One file a model family, named like the ``model_type`` of HF configs; it defines ``FAMILY``."""
