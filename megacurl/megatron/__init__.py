# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Everything that runs on megatron.core: groups, packed passes, optimizer, checkpoint."""
