# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The text of megacurl plan: as short for 512 ranks as for 4, its numbers those of the plan."""

from __future__ import annotations

from megacurl.config.layout_format import format_size
from megacurl.sync.plan_report import format_plan
from tests.sync.layouts import real_case


def test_a_large_plan_is_short_and_true() -> None:
    plan = real_case("llama-3-70b", 8, 8, 8, 2, 16, 3).plan()
    lines = format_plan(plan, itemsize=2, bucket_mb=256).splitlines()
    assert len(lines) < 25 and max(map(len, lines)) <= 100
    assert lines[1] == "  from 512 trainer ranks = tensor 8 x data 8 x pipeline 8 (2 chunks)"
    stage = [plan.sent[rank] for rank in range(448, 512)]
    (row,) = (line for line in lines if "[448-511]" in line)
    assert row.split()[2:4] == format_size(2 * min(stage)).split()
    assert row.split()[-2:] == format_size(2 * max(stage)).split()
    # Two ranks of an engine hold each of the 8 key/value heads, and all hold alike.
    (row,) = (line for line in lines if line.startswith("  [0-15]"))
    assert row.split()[1:3] == format_size(2 * plan.shards[0]).split()
    messages, slices = plan.count()
    assert lines[-2].startswith(f"Buckets: {len(plan.buckets)}, at most 256 MiB")
    assert f"{messages:,} messages" in lines[-1] and f"{slices:,} slices" in lines[-1]
