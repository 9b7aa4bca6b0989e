# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Recorded rollouts: what is written is read back, also from files of earlier versions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from megacurl.config.errors import ConfigError
from megacurl.config.schema import Config
from megacurl.generation import rollout_metrics
from megacurl.recording import load_rollout, rollout_path, save_rollout
from megacurl.trajectory import Trajectory
from tests.tiny import make_trajectories


def _recorded(folder: Path) -> list[Trajectory]:
    first, *others = make_trajectories()
    failed = dataclasses.replace(first, correct=False, reward=-1.0, parsed=False, error="E: x")
    trajectories = [failed, *others]
    save_rollout(folder, 0, trajectories)
    return trajectories


def _edit(folder: Path, *, without: str) -> None:
    path = rollout_path(folder, 0)
    pq.write_table(pq.read_table(path).drop_columns([without]), path)


def test_round_trip(tmp_path: Path) -> None:
    trajectories = _recorded(tmp_path)
    loaded = load_rollout(tmp_path, 0, len(trajectories), Config())
    assert loaded == trajectories
    assert rollout_metrics(loaded)["reward/error"] == pytest.approx(1 / len(loaded))


def test_a_recording_from_before_errors_were_kept(tmp_path: Path) -> None:
    trajectories = _recorded(tmp_path)
    _edit(tmp_path, without="error")
    loaded = load_rollout(tmp_path, 0, len(trajectories), Config())
    assert loaded == [dataclasses.replace(t, error=None) for t in trajectories]


def test_scores_are_kept_and_rewarded(tmp_path: Path) -> None:
    first, *others = make_trajectories()
    graded = dataclasses.replace(first, correct=False, score=0.75, reward=0.5)
    save_rollout(tmp_path, 0, [graded, *others])
    assert load_rollout(tmp_path, 0, len(others) + 1, Config()) == [graded, *others]
    _edit(tmp_path, without="score")  # from before there were scores
    (binary, *_) = load_rollout(tmp_path, 0, len(others) + 1, Config())
    assert (binary.correct, binary.score, binary.reward) == (False, 0.0, -1.0)
    save_rollout(tmp_path, 0, [dataclasses.replace(graded, score=1.5), *others])
    with pytest.raises(ConfigError, match=r"rollout_000000\.parquet is damaged: grade is 1.5"):
        load_rollout(tmp_path, 0, len(others) + 1, Config())


def test_a_file_without_verdicts_is_damaged(tmp_path: Path) -> None:
    trajectories = _recorded(tmp_path)
    _edit(tmp_path, without="correct")
    with pytest.raises(ConfigError, match=r"rollout_000000\.parquet is damaged: .*'correct'"):
        load_rollout(tmp_path, 0, len(trajectories), Config())


def test_a_column_of_another_type_is_damaged(tmp_path: Path) -> None:
    trajectories = _recorded(tmp_path)
    path = rollout_path(tmp_path, 0)
    table = pq.read_table(path)
    place = table.column_names.index("correct")
    texts = pa.array(["yes"] * table.num_rows)
    pq.write_table(table.set_column(place, "correct", texts), path)
    with pytest.raises(ConfigError, match=r"rollout_000000\.parquet is damaged"):
        load_rollout(tmp_path, 0, len(trajectories), Config())
