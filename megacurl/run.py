# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A run put together from its settings: models, engine, data, metrics; and its saved state."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from megacurl.algorithms.drift import Drift
from megacurl.collection import Collector, Rollout
from megacurl.config.batches import actor_updates, critic_updates, critic_warmup
from megacurl.config.errors import ConfigError, about
from megacurl.config.schema import Config
from megacurl.config.yaml_file import dump_yaml
from megacurl.curriculum.cvpo import CVPOCurriculum
from megacurl.curriculum.sampling.registry import get_rule
from megacurl.data.chat import encode_prompts
from megacurl.data.cursor import PromptCursor
from megacurl.data.tokenizer import load_tokenizer
from megacurl.evaluate import Evaluator, result_path
from megacurl.evaluation.result import EvalResult
from megacurl.evaluation.table import print_before_after
from megacurl.generation import EncodedPrompt, Generator, Judged
from megacurl.megatron import checkpoint
from megacurl.megatron.actor import Actor, PolicyScorer
from megacurl.megatron.critic import Critic
from megacurl.megatron.groups import Grid
from megacurl.models.builder import build_model
from megacurl.observe.compute import ComputeMeter
from megacurl.observe.logger import MetricLogger
from megacurl.observe.progress import Progress
from megacurl.observe.timers import Timers
from megacurl.preflight import check_parts, check_same_model, make_engine
from megacurl.questions import training_questions
from megacurl.recording import check_recording
from megacurl.rollout.types import SamplingSpec
from megacurl.rollout_source import RolloutSource
from megacurl.servers import start_servers
from megacurl.sync.engine_sync import WeightSync
from megacurl.sync.export import export_hf


class Run:
    """Everything a training loop works with. Building it is collective over all ranks."""

    def __init__(self, config: Config, grid: Grid) -> None:
        self.config, self.grid = config, grid
        self.folder = Path(config.run.run_dir)
        self.verifier, self.shapes = check_parts(config)
        self.engine = make_engine(config, self.shapes, str(grid.device), grid.rank)
        self.resumed = checkpoint.find_checkpoint(config.run.load) if config.run.load else None
        state = checkpoint.read_run_state(self.resumed) if self.resumed else {}
        if self.resumed:
            check_same_model(state, self.shapes, self.resumed)
        self.step = int(state.get("step", 0))
        self.version = int(state.get("version", 0))
        if self.step >= config.training.train_iters:
            raise ConfigError(
                f"--train-iters {config.training.train_iters} is already reached: "
                f"{self.resumed} is after step {self.step}; raise it to go on"
            )
        if config.rollout.replay_rollouts is not None:
            steps = range(self.step, config.training.train_iters)
            check_recording(config.rollout.replay_rollouts, steps)
        self.progress = Progress(config.training.train_iters, self.step, enabled=grid.rank == 0)
        self._build_data()
        if self.resumed:
            self._restore_cursor(self.resumed, state)
        self._build_models()
        self.curriculum = CVPOCurriculum(config.cvpo)
        self.warming_up = critic_warmup(config) > 0
        self.drift, self.compute = Drift(), ComputeMeter(grid.world_size)
        if self.resumed:
            self._restore(self.resumed, state)
        self.lost_servers: dict[str, str] = {}
        # Last, so that a start that fails leaves nothing behind.
        self.servers = start_servers(self.engine, config, grid, self.folder / "servers")
        try:
            self._start_engine()
            self._open_outputs()
        except BaseException:
            self._end_servers()
            raise

    def _open_outputs(self) -> None:
        config, first = self.config, self.grid.rank == 0
        sinks = ["jsonl"]
        sinks += ["tensorboard"] if config.run.tensorboard else []
        if config.run.wandb_project:
            sinks.append("wandb")
            os.environ["WANDB_PROJECT"] = config.run.wandb_project
        self.logger = MetricLogger(
            self.folder, sinks, self.step if self.resumed else None, enabled=first
        )
        if first:
            dump_yaml(config, self.folder / "config.yaml")
        synchronize = torch.cuda.synchronize if self.grid.device.type == "cuda" else None
        self.timers = Timers(synchronize)

    def _build_data(self) -> None:
        config = self.config
        self.tokenizer: Any = load_tokenizer(config.model.hf_checkpoint)
        self.evaluator = Evaluator(config, self.tokenizer)
        prompts, left_out = training_questions(config.data, self.evaluator.questions)
        with about("--hf-checkpoint"):
            encoded = encode_prompts(
                prompts,
                self.tokenizer,
                apply_chat_template=config.data.apply_chat_template,
                max_prompt_len=config.rollout.rollout_max_prompt_len,
            )
        self.progress.note(
            f"{len(encoded.items)} questions from {config.data.prompt_data}{left_out}"
            + (f" ({encoded.dropped_overlong} too long)" if encoded.dropped_overlong else "")
        )
        if len(encoded.items) < config.training.rollout_batch_size:
            raise ConfigError(
                f"--rollout-batch-size {config.training.rollout_batch_size} is more than the "
                f"{len(encoded.items)} questions of --prompt-data {config.data.prompt_data}; "
                "lower it, or give more questions"
            )
        vocabulary = self.shapes["actor"].vocab_size
        largest = max(max(ids) for _, ids in encoded.items)
        if largest >= vocabulary:
            raise ConfigError(
                f"--hf-checkpoint {config.model.hf_checkpoint}: its tokenizer gives the id "
                f"{largest}, its model has {vocabulary} embeddings; give the tokenizer of that "
                "model"
            )
        self.cursor: PromptCursor[EncodedPrompt] = PromptCursor(
            encoded.items, seed=config.training.seed, shuffle=config.data.shuffle
        )
        rule = get_rule(config.sampling.sampling).build(config)
        self.rollouts = RolloutSource(
            Collector(rule, self.cursor, encoded.items, config),
            self._generate,
            config,
            saves=self.grid.rank == 0,
            note=self.progress.note,
        )
        self.sampling = SamplingSpec(
            max_tokens=config.rollout.rollout_max_response_len,
            temperature=config.rollout.rollout_temperature,
        )

    def _build_models(self) -> None:
        config, grid = self.config, self.grid
        policy, training = config.model.hf_checkpoint, config.training
        # The actor's schedule covers the rollouts that it trains on.
        warmup = min(critic_warmup(config), training.train_iters - 1)
        actor_rollouts = training.train_iters - warmup

        def build(role: Any, folder: str) -> Any:
            return build_model(role, folder, config.model, config.parallel)

        self.actor = Actor(
            build("actor", policy),
            config,
            grid,
            actor_rollouts * training.ppo_epochs * actor_updates(training),
        )
        self.critic = None
        if config.algorithm.use_critic:
            self.critic = Critic(
                build("critic", config.model.critic_hf_checkpoint or policy),
                config,
                grid,
                training.train_iters * training.critic_epochs * critic_updates(training),
            )
        self.reference = None
        if config.algorithm.kl_coef > 0:
            self.reference = PolicyScorer(build("reference", policy), config, grid)

    def _start_engine(self) -> None:
        config, grid = self.config, self.grid
        self.engine.start()
        self.sync = WeightSync(
            self.actor.network,
            self.engine,
            grid,
            bucket_bytes=config.rollout.sync_bucket_mb << 20,
        )
        self.generator = Generator(
            self.engine, self.tokenizer, self.verifier, grid, config.training.seed
        )

    def rollout(self) -> Rollout:
        """What this step trains on; collective."""
        rollout = self.rollouts(self.step)
        self._look_for_lost_servers()
        return rollout

    def _look_for_lost_servers(self) -> None:
        """Agree on the servers that any rank has lost, and tell of new ones; collective.

        What follows from a loss must follow on all ranks, and each sees its own requests only.
        """
        if not self.engine.is_client:
            return
        lost: dict[str, str] = {}
        for found in self.grid.gather_objects(self.engine.lost):
            lost = found | lost
        for url, reason in lost.items():
            if url not in self.lost_servers:
                self.progress.note(f"rollout server lost: {reason}")
        self.lost_servers = lost

    def _generate(self, prompts: Sequence[EncodedPrompt], step: int) -> list[list[Judged]]:
        return self.generator(
            prompts,
            self.config.training.n_samples_per_prompt,
            self.sampling,
            step=step,
            version=self.version,
            on_progress=self.show_progress("generate"),
        )

    def rest_engine(self) -> None:
        """Let the engine's memory go while the trainer works, if asked for."""
        if self.config.rollout.rollout_engine_sleep:
            self.engine.release_memory()

    def hand_over(self, *, trained: bool) -> None:
        """Give the engine the policy, unless it holds this one already; collective."""
        self.version += trained
        if trained or self.config.rollout.rollout_engine_sleep or self.lost_servers:
            self.sync(self.version)
            self._look_for_lost_servers()

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds of the models."""
        critic = {"critic": self.critic.trainable} if self.critic else {}
        return {"actor": self.actor.trainable, **critic}

    def _restore_cursor(self, folder: Path, state: dict[str, Any]) -> None:
        with about(f"--load {folder}"):
            self.cursor.load_state_dict(state["cursor"])

    def _restore(self, folder: Path, state: dict[str, Any]) -> None:
        checkpoint.load_checkpoint(folder, self.parts)
        self.curriculum.load_state_dict(state["curriculum"])
        self.rollouts.load_state_dict(state.get("rollouts", {}), folder)
        self.warming_up = bool(state["warming_up"])
        self.drift.load_state_dict(state.get("drift", {}))
        self.compute.load_state_dict(state.get("compute", {}))
        self.progress.note(f"resumed from {folder} after step {self.step}")

    def save_if_due(self) -> None:
        """Checkpoint at the interval and after the last step; collective."""
        settings = self.config.run
        last = self.step == self.config.training.train_iters
        due = settings.save_interval is not None and self.step % settings.save_interval == 0
        if not (last or due):
            return
        state = {
            "version": self.version,
            "warming_up": self.warming_up,
            "drift": self.drift.state_dict(),
            "compute": self.compute.state_dict(self.timers.so_far()),
            "shapes": {role: dataclasses.asdict(shape) for role, shape in self.shapes.items()},
            "cursor": self.cursor.state_dict(),
            "curriculum": self.curriculum.state_dict(),
            "rollouts": self.rollouts.state_dict(),
        }
        checkpoint.save_checkpoint(
            self.folder / "checkpoints",
            self.step,
            self.parts,
            state,
            self.grid,
            settings.keep_checkpoints,
            write_more=self.rollouts.save_ahead,
        )

    def spent_time(self) -> dict[str, float]:
        """Seconds by phase since the last call, and device-seconds of the run so far."""
        seconds = self.timers.pop()
        self.compute.add(seconds)
        return seconds | self.compute.metrics()

    def saved(self) -> list[Path]:
        """Checkpoints to go back to, newest first: this run's, or the one that it began with."""
        mine = checkpoint.complete_checkpoints(self.folder / "checkpoints")[::-1]
        return mine or ([self.resumed] if self.resumed else [])

    def evaluate_if_due(self) -> dict[str, float]:
        """Metrics of the evaluation after the present step, if one is due; collective."""
        if not self.evaluator.due(self.step):
            return {}
        metrics: dict[str, float] = {}
        show = self.show_progress("evaluate")
        for result in self.evaluator(
            self.generator, step=self.step, version=self.version, on_progress=show
        ):
            if self.grid.rank == 0:
                result.save(result_path(self.folder, result.set_name, self.step))
            metrics |= result.metrics()
        return metrics

    def show_progress(self, what: str) -> Any:
        """A callback for long work inside a step."""
        return lambda done, total: self.progress.sub(what, done, total)

    def finish(self) -> None:
        """Export the policy, print before and after; collective."""
        if self.config.run.export_hf:
            target = self.folder / "hf"
            export_hf(self.actor.network, self.config.model.hf_checkpoint, target, self.grid)
            self.progress.note(f"trained policy: {target}")
        if self.grid.rank == 0:
            for name in self.evaluator.sets:
                before, after = (result_path(self.folder, name, s) for s in (0, self.step))
                if before.is_file() and after.is_file() and before != after:
                    print_before_after(EvalResult.load(before), EvalResult.load(after))

    def close(self) -> None:
        """Close files and engine."""
        self.progress.close()
        self.logger.close()
        self.engine.shutdown()
        self._end_servers()

    def _end_servers(self) -> None:
        if self.servers:
            self.servers.close()
