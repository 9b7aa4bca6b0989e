# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""CVPO's curriculum: from the outcomes of a round to the difficulty weight of its questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from megacurl.config.schema import CVPOConfig
from megacurl.curriculum.difficulty import difficulty_weight
from megacurl.curriculum.phase import Phase, PhaseSwitch
from megacurl.curriculum.posterior import BetaTracker, PosteriorUpdate
from megacurl.curriculum.trend import StagnationTest, stagnation_test

_STATE_VERSION = 1

# The accuracy that W_D sees. The paper says "most recent accuracy"; its review, posterior mean.
_RHO_FIELD = {"latest": "latest", "posterior": "mean", "previous": "previous", "ema": "ema"}


class CVPOCurriculum:
    """Tracks the accuracy of every question and weighs questions by phase (CVPO section 4.2).

    Order within a round: posteriors are updated, the trend is tested, the phase may switch, and the
    weights already follow the phase that results. Deterministic: ranks that observe the same
    outcomes agree without communication.
    """

    def __init__(self, config: CVPOConfig) -> None:
        _check_trend(config)
        if config.wd_rho not in _RHO_FIELD:
            raise ValueError(f"wd_rho is {config.wd_rho!r}; use one of {sorted(_RHO_FIELD)}")
        self.config = config
        self._rho = _RHO_FIELD[config.wd_rho]
        self.tracker = BetaTracker(config.beta_prior, decay=config.beta_decay, ema=config.wd_ema)
        self.switch = PhaseSwitch(
            one_way=config.phase_one_way,
            patience=config.phase_patience,
            min_round=config.phase_min_round,
        )
        self.last_test: StagnationTest | None = None

    @property
    def phase(self) -> Phase:
        """The phase of the last round."""
        return self.switch.phase

    def observe(self, prompt_ids: Sequence[str], correct: Sequence[bool]) -> dict[str, float]:
        """Take one round of trajectories and return W_D of each of its questions.

        Args:
            prompt_ids: question id of every trajectory of the global batch.
            correct: verdict of every trajectory, in the same order; truncated ones count as judged.

        Returns:
            Weight by question id, in order of first appearance.
        """
        if len(prompt_ids) != len(correct):
            raise ValueError(
                f"{len(prompt_ids)} prompt_ids but {len(correct)} verdicts; give one a trajectory"
            )
        counts: dict[str, tuple[int, int]] = {}
        for question, verdict in zip(prompt_ids, correct, strict=True):
            if not isinstance(question, str):
                raise ValueError(f"prompt id {question!r} is no string; ids are strings")
            successes, attempts = counts.get(question, (0, 0))
            counts[question] = (successes + bool(verdict), attempts + 1)
        updates = self.tracker.observe(counts)
        self.last_test = self._test_trend(updates)
        phase = self.switch.step(self.last_test.stagnant)
        accuracies = [getattr(update, self._rho) for update in updates.values()]
        weights = difficulty_weight(
            torch.tensor(accuracies, dtype=torch.float64),
            phase,
            early=self.config.wd_early,
            bottleneck=self.config.wd_bottleneck,
        )
        return dict(zip(updates, weights.tolist(), strict=True))

    def _test_trend(self, updates: Mapping[str, PosteriorUpdate]) -> StagnationTest:
        means = [update.mean for update in updates.values()]
        deltas = [update.delta for update in updates.values()]
        if self.config.trend_scope == "tracked":
            # A question that was not sampled kept its mean: its change is 0.
            idle = [r.mean for q, r in self.tracker.records.items() if q not in updates]
            means += idle
            deltas += [0.0] * len(idle)
        return stagnation_test(
            means,
            deltas,
            low=self.config.trend_low,
            low_delta=self.config.trend_low_delta,
            high=self.config.trend_high,
            high_delta=self.config.trend_high_delta,
            aggregate=self.config.trend_aggregate,
            frac=self.config.trend_frac,
            empty_is_stagnant=self.config.trend_empty == "true",
        )

    def state_dict(self) -> dict[str, Any]:
        """Return everything that later rounds depend on, JSON-able."""
        return {
            "version": _STATE_VERSION,
            "tracker": self.tracker.state_dict(),
            "switch": self.switch.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue exactly where :meth:`state_dict` was taken."""
        version = state.get("version")
        if version != _STATE_VERSION:
            raise ValueError(
                f"the curriculum state has version {version}; this MegaCURL reads {_STATE_VERSION}"
            )
        self.tracker.load_state_dict(state["tracker"])
        self.switch.load_state_dict(state["switch"])
        self.last_test = None

    def metrics(self) -> dict[str, float]:
        """Return the state of the curriculum after the last round (phase 0 early, 1 bottleneck)."""
        tracked = self.tracker.metrics()
        result = {
            "curriculum/phase": float(self.phase == "bottleneck"),
            "curriculum/tracked": tracked["tracked"],
            "curriculum/posterior_mean": tracked["posterior_mean"],
        }
        if self.last_test is not None:
            result |= {
                "curriculum/mean_low_delta": self.last_test.mean_low_delta,
                "curriculum/mean_high_delta": self.last_test.mean_high_delta,
                "curriculum/n_low": float(self.last_test.n_low),
                "curriculum/n_high": float(self.last_test.n_high),
            }
        return result


def _check_trend(config: CVPOConfig) -> None:
    if not 0 <= config.trend_low < config.trend_high <= 1:
        raise ValueError(
            f"trend_low={config.trend_low}, trend_high={config.trend_high}; "
            "they must satisfy 0 <= trend_low < trend_high <= 1"
        )
    if not 0 < config.trend_frac <= 1:
        raise ValueError(f"trend_frac is {config.trend_frac}; it must lie in (0, 1]")
