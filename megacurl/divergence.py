# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The end of a run whose numbers are no longer finite: no bug, but something to be told about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from megacurl.config.schema import Config


class DivergenceError(RuntimeError):
    """Gradient norms or probabilities are not finite; ``problems`` is what the user is told."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def explain_divergence(
    error: FloatingPointError, config: Config, step: int, checkpoints: Sequence[Path]
) -> DivergenceError:
    """The error that says what happened and how to go on.

    Args:
        error: what was not finite.
        config: the run's.
        step: completed steps.
        checkpoints: those that can be loaded, newest first.
    """
    optimizer = config.optimizer
    rates = f"--lr (it was {optimizer.lr:g})"
    if config.algorithm.use_critic:
        rates += f" or --critic-lr (it was {optimizer.critic_lr:g})"
    problems = [f"the run has diverged after step {step}: {error}"]
    if checkpoints:
        own = checkpoints[0].is_relative_to(config.run.run_dir)
        problems.append(
            f"go on from {checkpoints[0]} with a lower {rates}: give it as --load, with "
            f"--config {config.run.run_dir}/config.yaml" + ("" if own else " and a new --run-dir")
        )
    else:
        problems.append(f"it has no checkpoint: start again with a lower {rates}")
    if checkpoints[1:]:
        earlier = ", ".join(path.name for path in checkpoints[1:])
        problems.append(f"if that diverges at once, go back further: {earlier}")
    return DivergenceError(problems)
