# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Model families: HF config -> Megatron model, and the weight map both ways."""
