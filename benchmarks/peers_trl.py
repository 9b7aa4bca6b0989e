# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""TRL's side of peers.py; runs in TRL's environment.

Its trainer does what it does for anyone; a callback waits for the turn and reads the clock. The
reward is MegaCURL's verifier. What is no matter of the algorithm is set as it is fastest for TRL:
activations are kept (by default it computes them again), a rollout goes through the model in one
batch, and no process looks for parameters without a gradient.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from transformers.utils.logging import disable_progress_bar
from trl import GRPOConfig, GRPOTrainer

from megacurl.rewards import get_verifier, verify_batch
from megacurl.rewards.registry import verifier_options
from peers_plan import Assignment, PeerBench
from peers_turns import Player


def settings_of(assignment: Assignment) -> GRPOConfig:
    """TRL's settings: MegaCURL's preset as far as TRL has them, which is all the way."""
    bench = assignment.bench
    return GRPOConfig(
        output_dir=assignment.folder,
        seed=assignment.seed,
        use_cpu=True,
        bf16=False,
        model_init_kwargs={"dtype": "float32"},
        gradient_checkpointing=False,
        per_device_train_batch_size=bench.responses // assignment.contender.processes,
        gradient_accumulation_steps=1,
        num_generations=bench.samples,
        max_completion_length=bench.max_response,
        temperature=bench.temperature,
        top_p=1.0,
        top_k=0,
        max_steps=bench.steps,
        num_iterations=1,
        learning_rate=bench.lr,
        lr_scheduler_type="constant",
        warmup_steps=0,
        weight_decay=bench.weight_decay,
        adam_beta1=bench.adam_beta1,
        adam_beta2=bench.adam_beta2,
        adam_epsilon=bench.adam_eps,
        max_grad_norm=bench.clip_grad,
        loss_type="grpo",
        scale_rewards="group",
        importance_sampling_level="token",
        epsilon=bench.eps_clip,
        epsilon_high=bench.eps_clip,
        beta=0.0,
        ddp_find_unused_parameters=False,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )


def questions(base: str) -> Dataset:
    """The training questions as chats, so that TRL applies the chat template as MegaCURL does."""
    rows = [json.loads(line) for line in (Path(base) / "train.jsonl").read_text().splitlines()]
    return Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": row["prompt"]}], "answer": row["answer"]}
            for row in rows
        ]
    )


class Reward:
    """1 for a right response and -1 for a wrong one, by MegaCURL's verifier."""

    def __init__(self, bench: PeerBench, end_ids: Sequence[int]) -> None:
        """``end_ids``: the tokens that end a response."""
        options = verifier_options(
            require_value=bench.require_value, symbolic=True, correct_threshold=None
        )
        self.verifier = get_verifier(bench.verifier, **options)
        self.end_ids = frozenset(end_ids)
        self.__name__ = "reward"  # TRL names its metrics by it

    def __call__(
        self,
        completions: Sequence[Sequence[dict[str, str]]],
        completion_ids: Sequence[Sequence[int]],
        answer: Sequence[str],
        **unused: Any,
    ) -> list[float]:
        """A reward for each of ``completions``."""
        texts = [messages[0]["content"] for messages in completions]
        finished = [bool(ids) and ids[-1] in self.end_ids for ids in completion_ids]
        verdicts = verify_batch(self.verifier, texts, answer, finished)
        return [1.0 if verdict.correct else -1.0 for verdict in verdicts]


class TakeTurns(TrainerCallback):  # type: ignore[misc]
    """A step goes from one beginning to the next, so that all the trainer does is in one."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.numbers: dict[str, float] | None = None

    def on_step_begin(self, *unused: Any, **ignored: Any) -> None:
        """The last step is over; wait for the turn of this one."""
        self._end()
        self.player.begin()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
        """Keep the means of the step's responses."""
        if logs and "reward" in logs:
            accuracy = (float(logs["reward"]) + 1) / 2
            self.numbers = {"accuracy": accuracy, "length": float(logs["completions/mean_length"])}

    def on_train_end(self, *unused: Any, **ignored: Any) -> None:
        """So is the very last one."""
        self._end()

    def _end(self) -> None:
        if self.numbers is not None:
            self.player.end(**self.numbers)
            self.numbers = None


def main() -> None:
    """torchrun peers_trl.py ASSIGNMENT."""
    disable_progress_bar()
    assignment = Assignment.of_json(sys.argv[1])
    bench = assignment.bench
    torch.set_num_threads(bench.threads)
    generation = json.loads((Path(bench.base) / "generation_config.json").read_text())
    ends = generation["eos_token_id"]
    trainer = GRPOTrainer(
        model=bench.base,
        reward_funcs=Reward(bench, ends if isinstance(ends, list) else [ends]),
        args=settings_of(assignment),
        train_dataset=questions(bench.base),
    )
    player = Player(assignment.address, assignment.contender.name, bench.read_clock)
    trainer.add_callback(TakeTurns(player))
    trainer.train()
    player.close()
    trainer.save_model(str(Path(assignment.folder) / "hf"))
    sys.stdout.flush()
    os._exit(0)  # the ranks end at different times, and a gloo group may then wait for ever


if __name__ == "__main__":
    main()
