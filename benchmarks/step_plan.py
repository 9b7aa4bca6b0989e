# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What step.py measures, and the records that its processes hand back; imports nothing heavy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from megacurl.config.load import parse_args
from megacurl.config.schema import Config

PHASES = ("generate", "log_prob", "train", "sync")
# What both report, and MegaCURL's name of it.
NUMBERS = {
    "policy_loss": "actor/policy_loss",
    "value_loss": "critic/loss",
    "policy_grad_norm": "actor/grad_norm",
    "value_grad_norm": "critic/grad_norm",
}
# The settings of examples/run_cvpo_tiny.sh, but every step trains the actor too.
TINY_RUN = (
    *("--rollout-max-prompt-len", "128", "--max-tokens-per-micro-batch", "8192"),
    *("--lr", "1e-4", "--critic-lr", "1e-3", "--weight-decay", "0"),
    *("--lam-critic", "1.0", "--critic-warmup-iters", "0"),
)
# What makes MegaCURL's PPO the same computation as plain PPO, down to the losses.
PLAIN = ("--lam-policy", "1.0", "--value-clip", "None")


@dataclass(frozen=True)
class StepBench:
    """What is measured. ``base``: Hugging Face folder with ``train.jsonl``. ``clock``: "wall", or
    "cpu" for the time that the process itself computed."""

    base: str
    run_dir: str
    algorithm: str = "cvpo"
    verifier: str = "math"
    prompts: int = 16
    samples: int = 8
    epochs: int = 1
    max_response: int = 48
    rounds: int = 8
    clock: str = "wall"
    threads: int = 1

    @property
    def config(self) -> Config:
        """MegaCURL's settings."""
        flags = [
            *("--algorithm", self.algorithm, *TINY_RUN),
            *(PLAIN if self.algorithm == "ppo" else ()),
            *("--hf-checkpoint", self.base, "--prompt-data", str(Path(self.base) / "train.jsonl")),
            *("--verifier", self.verifier),
            *(("--require-value",) if self.verifier == "math" else ()),
            *("--rollout-batch-size", str(self.prompts)),
            *("--n-samples-per-prompt", str(self.samples)),
            *("--ppo-epochs", str(self.epochs), "--critic-epochs", str(self.epochs)),
            *("--rollout-max-response-len", str(self.max_response)),
            *("--run-dir", self.run_dir),
            # The last step of a run saves a checkpoint; it is never reached.
            *("--train-iters", str(self.rounds + 2)),
        ]
        return parse_args(flags)

    @property
    def read_clock(self) -> Callable[[], float]:
        return time.process_time if self.clock == "cpu" else time.perf_counter


@dataclass(frozen=True)
class Turn:
    """One step of one contender: seconds of the phases and of the whole step, and its numbers."""

    seconds: dict[str, float]
    step: float
    numbers: dict[str, float]

    @property
    def outside(self) -> float:
        """Seconds in none of the phases."""
        return self.step - sum(self.seconds.values())


@dataclass(frozen=True)
class Round:
    """Both contenders' step on the same responses."""

    tokens: int
    longest: int
    megacurl: Turn
    plain: Turn


def save_rounds(rounds: Sequence[Round], file: Path) -> None:
    """Write what ``load_rounds`` reads."""
    file.write_text(json.dumps([asdict(r) for r in rounds]))


def load_rounds(file: Path) -> list[Round]:
    """What ``save_rounds`` wrote."""
    rows: list[dict[str, Any]] = json.loads(file.read_text())
    return [
        Round(r["tokens"], r["longest"], Turn(**r["megacurl"]), Turn(**r["plain"])) for r in rows
    ]
