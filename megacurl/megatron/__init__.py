# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Everything that runs on megatron.core: groups, packed passes, optimizer, checkpoint."""

import warnings

# What megatron.core and torch say on every rank about libraries that a CPU has no use for, and
# about names that are being renamed, would bury what a user must read.
for _text in (
    ".*Apex (are|is) not installed.*",
    ".*full scope is deprecated.*",
    ".*custom_layers.transformer_engine.*",
    ".*CUDA_DEVICE_MAX_CONNECTIONS.*",
    ".*torch.distributed.* is deprecated.*",
    ".*The .grad attribute of a Tensor that is not a leaf.*",
):
    warnings.filterwarnings("ignore", message=_text)
