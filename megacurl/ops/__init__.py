# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The compiled operators of ``csrc/`` as ``torch.ops.megacurl.*``, and when they are used.

``megacurl.algorithms`` holds the formulas and their plain PyTorch references; a function there asks
:func:`usable` and calls the operator of the same name. docs/kernels.md lists the operators.
"""

from megacurl.ops.library import (
    NAMES,
    BuildInfo,
    Mode,
    build_info,
    device_types,
    is_built,
    mode,
    usable,
    using,
)

__all__ = [
    "NAMES",
    "BuildInfo",
    "Mode",
    "build_info",
    "device_types",
    "is_built",
    "mode",
    "usable",
    "using",
]
