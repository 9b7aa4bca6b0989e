# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Rollouts on disk, one parquet file a step, so that training can be repeated on them.

``--save-rollouts DIR`` writes them, ``--replay-rollouts DIR`` trains on them. With the responses
fixed, two runs differ by what they do with them: the way to compare layouts, settings or versions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from megacurl.algorithms.outcome import outcome_reward
from megacurl.config.errors import ConfigError
from megacurl.config.schema import Config
from megacurl.rewards.verdict import check_grade
from megacurl.trajectory import Trajectory

_SCHEMA = pa.schema(
    [
        ("prompt_id", pa.string()),
        ("group", pa.int64()),
        ("prompt_ids", pa.list_(pa.int32())),
        ("response_ids", pa.list_(pa.int32())),
        ("log_probs", pa.list_(pa.float64())),
        ("truncated", pa.bool_()),
        ("version", pa.int64()),
        ("correct", pa.bool_()),
        ("score", pa.float64()),
        ("reward", pa.float64()),
        ("parsed", pa.bool_()),
        ("timeout", pa.bool_()),
        ("error", pa.string()),
    ]
)
# Later additions, with nulls where a file is older than they are.
_OPTIONAL = {"error", "score"}


def rollout_path(folder: str | Path, step: int) -> Path:
    """The file of the rollout that follows ``step`` completed steps."""
    return Path(folder) / f"rollout_{step:06d}.parquet"


def save_rollout(folder: str | Path, step: int, trajectories: Sequence[Trajectory]) -> None:
    """Write a step's trajectories; the file appears whole or not at all and replaces an older."""
    target = rollout_path(folder, step)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_trajectories(target, trajectories)


def write_trajectories(target: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write ``target``, which appears whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    rows = [dataclasses.asdict(t) for t in trajectories]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), partial)
    partial.replace(target)


def check_recording(folder: str | Path, steps: range) -> None:
    """ConfigError unless there is a file for every one of ``steps``; before anything is loaded."""
    missing = [path.name for step in steps if not (path := rollout_path(folder, step)).is_file()]
    if missing:
        raise ConfigError(
            f"--replay-rollouts {folder}: {missing[0]} is missing ({len(missing)} of {len(steps)} "
            "are); record as many steps as are replayed (--save-rollouts), or lower --train-iters"
        )


def load_rollout(folder: str | Path, step: int, count: int, config: Config) -> list[Trajectory]:
    """What ``save_rollout`` wrote, with the rewards that ``config`` gives.

    Raises:
        ConfigError: if the file is damaged or does not hold ``count`` trajectories.
    """
    path = rollout_path(folder, step)
    try:
        trajectories = read_trajectories(path, config)
    except (ValueError, pa.ArrowException, OSError) as error:
        raise ConfigError(f"--replay-rollouts {folder}: {path.name} is damaged: {error}") from error
    if len(trajectories) != count:
        raise ConfigError(
            f"--replay-rollouts {folder}: {path.name} has {len(trajectories)} responses, but "
            f"--rollout-batch-size times --n-samples-per-prompt is {count}; set them as recorded"
        )
    return trajectories


def read_trajectories(path: Path, config: Config) -> list[Trajectory]:
    """What ``write_trajectories`` wrote, with the rewards that ``config`` gives.

    Raises:
        ValueError, pyarrow.ArrowException, OSError: if the file is damaged.
    """
    # A column that the schema has and the file lacks is read as nulls.
    missing = set(_SCHEMA.names) - set(pq.read_schema(path).names) - _OPTIONAL
    if missing:
        raise ValueError(f"it has no column {', '.join(map(repr, sorted(missing)))}")
    rows = pq.read_table(path, schema=_SCHEMA).to_pylist()
    for row in rows:
        row.update({name: tuple(row[name]) for name in ("prompt_ids", "response_ids", "log_probs")})
        if row["score"] is None:
            row["score"] = float(row["correct"])
        check_grade(row["score"])
        row["reward"] = outcome_reward(
            config,
            score=row["score"],
            truncated=row["truncated"],
            length=len(row["response_ids"]),
        )
    return [Trajectory(**row) for row in rows]
