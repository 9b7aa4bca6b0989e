# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What peers.py measures. Both trainers' environments import it, so it needs Python alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

Library = Literal["megacurl", "trl"]
LABELS: dict[Library, str] = {"megacurl": "MegaCURL", "trl": "TRL"}


@dataclass(frozen=True)
class PeerBench:
    """The training that both do: GRPO as of MegaCURL's preset, with one update a rollout.

    base: Hugging Face folder with ``train.jsonl`` and ``test.jsonl``. max_response, max_prompt:
    tokens. threads: of every process. clock: "wall", or "cpu" for the time that a process computed.
    """

    base: str
    steps: int = 40
    prompts: int = 16
    samples: int = 8
    max_response: int = 48
    max_prompt: int = 128
    verifier: str = "math"
    threads: int = 1
    clock: Literal["wall", "cpu"] = "wall"
    # The settings of examples/run_cvpo_tiny.sh --algorithm grpo.
    lr: float = 1e-4
    weight_decay: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.95
    adam_eps: float = 1e-8
    clip_grad: float = 1.0
    eps_clip: float = 0.2
    temperature: float = 1.0

    @property
    def responses(self) -> int:
        """Of one step, over all processes."""
        return self.prompts * self.samples

    @property
    def read_clock(self) -> Callable[[], float]:
        return time.process_time if self.clock == "cpu" else time.perf_counter

    @property
    def require_value(self) -> bool:
        """Whether the verifier refuses a sum as the answer to a sum."""
        return self.verifier == "math"


@dataclass(frozen=True)
class Contender:
    """A library on a number of processes."""

    library: Library
    processes: int

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.library}-{self.processes}"

    @property
    def label(self) -> str:
        """For tables."""
        return f"{LABELS[self.library]}, {self.processes} process{'es' * (self.processes > 1)}"


@dataclass(frozen=True)
class Step:
    """seconds: of the slowest process. accuracy, length: mean over the step's responses."""

    seconds: float
    accuracy: float
    length: float


@dataclass(frozen=True)
class Training:
    """A contender's run with one seed. turns: its steps, as they were taken turn by turn.

    heldout: mean accuracy on the held-out questions after the last step.
    """

    contender: Contender
    seed: int
    turns: tuple[tuple[Step, ...], ...]
    heldout: float

    @property
    def steps(self) -> list[Step]:
        return [step for turn in self.turns for step in turn]

    def to_json(self) -> dict[str, Any]:
        """What ``of_json`` reads."""
        return asdict(self)

    @classmethod
    def of_json(cls, row: dict[str, Any]) -> Training:
        """Back from ``to_json``."""
        turns = tuple(tuple(Step(**step) for step in turn) for turn in row["turns"])
        return cls(Contender(**row["contender"]), row["seed"], turns, row["heldout"])


@dataclass(frozen=True)
class Assignment:
    """A worker's part, its one argument as JSON. address: of the socket where turns are given out.

    folder: for what the trainer writes; the trained model goes to ``folder/hf``.
    """

    bench: PeerBench
    contender: Contender
    seed: int
    address: str
    folder: str

    @classmethod
    def of_json(cls, text: str) -> Assignment:
        """Back from ``to_json``."""
        row = json.loads(text)
        rest = {key: row[key] for key in ("seed", "address", "folder")}
        return cls(PeerBench(**row["bench"]), Contender(**row["contender"]), **rest)

    def to_json(self) -> str:
        """What ``of_json`` reads."""
        return json.dumps(asdict(self))
