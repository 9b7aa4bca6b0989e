# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Seeds are stable across processes and differ in every field."""

from __future__ import annotations

from itertools import product

from megacurl.rollout import sample_seed


def test_value_is_fixed_for_all_time() -> None:
    # A run resumed with a newer version must draw the same samples.
    assert sample_seed(1, 2, "aime-3", 4) == 8361518459970570757


def test_range_and_no_collisions() -> None:
    fields = product(range(3), range(5), ("a", "b", "ab"), range(40))
    seeds = [sample_seed(*f) for f in fields]
    assert len(set(seeds)) == len(seeds) == 3 * 5 * 3 * 40
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_fields_do_not_run_together() -> None:
    assert sample_seed(1, 23, "x", 0) != sample_seed(12, 3, "x", 0)
    assert sample_seed(0, 0, "p1", 1) != sample_seed(0, 0, "p", 11)
