# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a run reports about itself: the metric schema, sinks, timers and live progress."""
