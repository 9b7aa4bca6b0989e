# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What tiny_table.py trains, and the record of each training; imports nothing heavy."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from megacurl.config.load import parse_args, resolve_defaults
from megacurl.config.presets import PRESETS
from megacurl.config.schema import Config

PROMPTS, SAMPLES = 16, 8
# The settings of examples/run_cvpo_tiny.sh, the same for all systems.
TINY_RUN = (
    *("--rollout-batch-size", str(PROMPTS), "--n-samples-per-prompt", str(SAMPLES)),
    *("--rollout-max-prompt-len", "128", "--rollout-max-response-len", "48"),
    *("--max-tokens-per-micro-batch", "8192", "--weight-decay", "0", "--require-value"),
    *("--lr", "1e-4", "--eval-top-p", "1.0", "--no-tensorboard", "--no-export-hf"),
)
WITH_CRITIC = ("--critic-lr", "1e-3", "--critic-warmup-iters", "2")
# The example's one deviation from the paper: responses of 25 tokens instead of thousands.
CVPO_TINY = ("--lam-critic", "1.0")


@dataclass(frozen=True)
class System:
    """A row of the table: a preset, and the flags that make it another one."""

    name: str
    preset: str
    flags: tuple[str, ...] = ()

    @property
    def all_flags(self) -> tuple[str, ...]:
        """Its flags over those of the tiny run."""
        critic = WITH_CRITIC if resolve_defaults(self.preset).algorithm.use_critic else ()
        cvpo = CVPO_TINY if self.preset.startswith("cvpo") else ()
        return ("--algorithm", self.preset, *TINY_RUN, *critic, *cvpo, *self.flags)


BASE = System("base model", "ppo")  # evaluated, not trained
SYSTEMS = tuple(System(preset, preset) for preset in PRESETS)
# The paper's coefficient sweep (0.3 is the preset), and what it leaves open or contradicts.
VARIANTS = (
    System("cvpo, coefficient 0.1", "cvpo", ("--variance-coefficient", "0.1")),
    System("cvpo, coefficient 0.5", "cvpo", ("--variance-coefficient", "0.5")),
    System("cvpo, W_S as in the prose", "cvpo", ("--ws-direction", "prose")),
    System("cvpo, lambda_critic 0.1", "cvpo", ("--lam-critic", "0.1")),
    System("cvpo, rho posterior", "cvpo", ("--wd-rho", "posterior")),
)


@dataclass(frozen=True)
class Training:
    """One training. ``budgets``: evaluate when so many responses are sampled, in rising order.
    ``base``: folder of examples/models/make_tiny_base.py."""

    system: System
    seed: int
    budgets: tuple[int, ...]
    base: str
    run_dir: str
    eval_samples: int = 16

    @property
    def config(self) -> Config:
        """MegaCURL's settings."""
        base = Path(self.base)
        flags = [
            *self.system.all_flags,
            *("--hf-checkpoint", self.base, "--prompt-data", str(base / "train.jsonl")),
            *("--eval-prompt-data", f"heldout={base / 'test.jsonl'}"),
            *("--n-samples-per-eval-prompt", str(self.eval_samples)),
            *("--seed", str(self.seed), "--run-dir", self.run_dir),
            # Never reached: a system may need more or fewer steps for its rollouts.
            *("--train-iters", str(max(1, *self.budgets))),
        ]
        return parse_args(flags)


@dataclass(frozen=True)
class Score:
    """Held-out questions after some steps.

    Attributes:
        steps: rollouts that were trained on.
        responses, tokens: sampled so far.
        seconds: computed so far, without the evaluations.
        right: correct samples by level of the question.
        asked: samples by level.
    """

    steps: int
    responses: int
    tokens: int
    seconds: float
    right: dict[str, int]
    asked: dict[str, int]

    def accuracy(self, level: str | None = None) -> float:
        """avg@k of the questions of ``level``, or of all."""
        levels = list(self.asked) if level is None else [level]
        return sum(self.right[one] for one in levels) / sum(self.asked[one] for one in levels)


@dataclass(frozen=True)
class Record:
    """What came of a training: one score a budget."""

    name: str
    seed: int
    scores: list[Score]

    def save(self, file: Path) -> None:
        """Write what ``load`` reads; a file that is there is whole."""
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)))
        part.rename(file)

    @classmethod
    def load(cls, file: Path) -> Record:
        """What ``save`` wrote."""
        row: dict[str, Any] = json.loads(file.read_text())
        return cls(row["name"], row["seed"], [Score(**score) for score in row["scores"]])
