# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``python -m megacurl``: the same commands as the ``megacurl`` script, as torchrun starts them."""

from __future__ import annotations

import sys

from megacurl.cli import main

if __name__ == "__main__":
    sys.exit(main())
