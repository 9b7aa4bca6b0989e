# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A worker (megacurl/rewards/worker_pool.py) that does as it is told: yes, no, sleep, die."""

from __future__ import annotations

import os
import sys
import time

from megacurl.rewards.worker_pool import NO, READY, YES

if __name__ == "__main__":
    os.write(1, READY)
    for line in sys.stdin.buffer:
        order = line.strip()
        if order == b"die":
            sys.exit(3)
        if order == b"sleep":
            time.sleep(60)
        os.write(1, YES if order == b"yes" else NO)
