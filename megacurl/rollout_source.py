# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Where the rollouts of a run come from: generated, a step ahead if asked for, or replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from megacurl.collection import Collector, Rollout
from megacurl.config.batches import responses_per_rollout
from megacurl.config.errors import ConfigError, refusing
from megacurl.config.schema import Config
from megacurl.generation import EncodedPrompt, Judged
from megacurl.recording import load_rollout, read_trajectories, save_rollout, write_trajectories

Generate = Callable[[Sequence[EncodedPrompt], int], list[list[Judged]]]
"""Judged responses to questions, sampled with the seeds of a step, on every rank; collective."""
_AHEAD_FILE = "ahead.parquet"


class RolloutSource:
    """Hands out the rollout of every step in turn; all ranks do the same.

    With ``rollout_lag`` 1 a step first generates the rollout of the next step with the weights
    that it starts from, then trains on its own: all but the first are exactly one version old.
    """

    def __init__(
        self,
        collector: Collector,
        generate: Generate,
        config: Config,
        *,
        saves: bool,
        note: Callable[[str], None],
    ) -> None:
        """
        Args:
            collector: fills a batch.
            generate: samples and judges.
            config: the run's settings.
            saves: whether this rank writes recordings.
            note: tells the user something.
        """
        self.collector, self.generate, self.config = collector, generate, config
        self._saves, self._note = saves, note
        self._ahead: Rollout | None = None

    def __call__(self, step: int) -> Rollout:
        """The rollout that zero-based ``step`` trains on; collective."""
        training, settings = self.config.training, self.config.rollout
        if settings.replay_rollouts is not None:
            self.collector.cursor.next(training.rollout_batch_size)
            count = responses_per_rollout(training)
            return Rollout.of(load_rollout(settings.replay_rollouts, step, count, self.config))
        rollout = self._ahead or self._collect(step)
        self._ahead = None
        if settings.rollout_lag and step + 1 < training.train_iters:
            self._ahead = self._collect(step + 1)
        return rollout

    def _collect(self, step: int) -> Rollout:
        rollout = self.collector(step, lambda prompts: self.generate(prompts, step))
        folder = self.config.rollout.save_rollouts
        if folder is not None and self._saves:
            save_rollout(folder, step, rollout.trajectories)
        if missing := rollout.metrics.get("sampling/shortfall"):
            self._note(
                f"--sampling {self.config.sampling.sampling} is {missing:.0f} of "
                f"{self.config.training.rollout_batch_size} questions short: a smaller batch"
            )
        return rollout

    def state_dict(self) -> dict[str, Any]:
        """JSON-able: the rule's state, and of the rollout made ahead what is not in its file."""
        ahead = self._ahead
        state: dict[str, Any] = {"rule": self.collector.rule.state_dict()}
        if ahead is not None:
            state["ahead"] = {"chosen": ahead.chosen, "metrics": ahead.metrics}
        return state

    def save_ahead(self, folder: Path) -> None:
        """Write the responses of the rollout made ahead, if there is one, into ``folder``."""
        if self._ahead is not None:
            write_trajectories(folder / _AHEAD_FILE, self._ahead.everything)

    def load_state_dict(self, state: Mapping[str, Any], folder: Path) -> None:
        """Continue where the two above were called; ``folder`` is the checkpoint.

        Raises ConfigError for the state of another rule, or a rollout made ahead that this run
        would not train on as such.
        """
        with refusing(f"--load {folder}"):
            self.collector.rule.load_state_dict(state.get("rule", {}))
        ahead = state.get("ahead")
        if ahead is None or self.config.rollout.replay_rollouts is not None:
            return
        if not self.config.rollout.rollout_lag:
            raise ConfigError(
                f"--load {folder} holds a rollout that was made one step ahead; give "
                "--rollout-lag 1, as its run did"
            )
        everything = read_trajectories(folder / _AHEAD_FILE, self.config)
        self._ahead = Rollout.choose(everything, ahead["chosen"], ahead["metrics"])
