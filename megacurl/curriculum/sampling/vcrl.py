# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""VCRL's rule: questions of high group variance, refilled from a memory of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from megacurl.config.schema import Config
from megacurl.curriculum.group_variance import group_variance, threshold_at
from megacurl.curriculum.replay_bank import ReplayBank
from megacurl.curriculum.sampling.registry import register_rule
from megacurl.curriculum.sampling.rule import Ask, GroupOutcome, SamplingRule


class VCRLSampling(SamplingRule):
    """Keeps fresh questions whose variance exceeds kappa; the bank's best fill what is missing.

    Replayed questions are rolled out again by the present policy and trained on whatever their new
    variance; they are never ones of the step's fresh batch. A bank that cannot fill the gap leaves
    the batch smaller. Kept questions enter the bank after the replays of their step.
    """

    def __init__(
        self,
        batch_size: int,
        bank: ReplayBank,
        *,
        kappa_early: float = 0.3,
        kappa_late: float = 0.8,
        kappa_switch_step: int = 20,
    ) -> None:
        """
        Args:
            batch_size: questions of a step.
            bank: the memory.
            kappa_early, kappa_late: thresholds, the former for the first ``kappa_switch_step``
                steps.
            kappa_switch_step: first step with the late threshold.
        """
        self.batch_size, self.bank = batch_size, bank
        self._kappas, self._switch_step = (kappa_early, kappa_late), kappa_switch_step
        self._step = 0
        self._kept: dict[str, float] | None = None
        self._fresh: set[str] = set()
        self._replayed: list[str] = []

    @property
    def kappa(self) -> float:
        """The threshold of the step."""
        early, late = self._kappas
        return threshold_at(self._step, early=early, late=late, switch_step=self._switch_step)

    def begin(self, step: int) -> Ask:
        self._step, self._kept, self._fresh, self._replayed = step, None, set(), []
        return Ask(fresh=self.batch_size)

    def observe(self, outcomes: Sequence[GroupOutcome]) -> None:
        variances = {o.question: group_variance(o.scores, low=0, high=1) for o in outcomes}
        if self._kept is None:
            self._fresh = set(variances)
            self._kept = {q: p for q, p in variances.items() if p > self.kappa}
            return
        for question, variance in variances.items():
            self.bank.replayed(question, variance, self._step)
            self._replayed.append(question)

    def more(self) -> Ask:
        if self._replayed:
            return Ask()
        shortfall = self.batch_size - len(self._kept or {})
        return Ask(again=tuple(self.bank.take(shortfall, exclude=self._fresh)))

    def finish(self) -> list[str]:
        kept = self._kept or {}
        for question, variance in kept.items():
            self.bank.keep(question, variance, self._step)
        return [*kept, *self._replayed]

    def metrics(self) -> dict[str, float]:
        kept = len(self._kept or {})
        return {
            "kappa": self.kappa,
            "kept": kept / max(len(self._fresh), 1),
            "replayed": float(len(self._replayed)),
            "shortfall": float(self.batch_size - kept - len(self._replayed)),
            **{f"bank_{name}": value for name, value in self.bank.metrics().items()},
        }

    def state_dict(self) -> dict[str, Any]:
        return {"bank": self.bank.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if "bank" not in state:
            raise ValueError("the checkpoint has no replay bank: another --sampling rule wrote it")
        self.bank.load_state_dict(state["bank"])


@register_rule("vcrl", needs_groups=True)
def build(config: Config) -> SamplingRule:
    """With the ``vcrl_*`` settings."""
    settings = config.sampling
    early, late = settings.vcrl_kappa
    bank = ReplayBank(
        momentum=settings.vcrl_momentum,
        max_replays=settings.vcrl_max_replays,
        beta=settings.vcrl_beta,
        capacity=settings.vcrl_bank_size,
    )
    return VCRLSampling(
        config.training.rollout_batch_size,
        bank,
        kappa_early=early,
        kappa_late=late,
        kappa_switch_step=settings.vcrl_kappa_switch,
    )
