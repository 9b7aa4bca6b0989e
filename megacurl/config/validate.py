# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What settings mean together: every contradiction of a Config, found at once, with its fix."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from megacurl.config.batches import critic_warmup, update_problems
from megacurl.config.bounds import bound_problems
from megacurl.config.errors import raise_problems
from megacurl.config.estimation import estimator_problems, no_critic_problems, sampling_problems
from megacurl.config.eval_specs import eval_spec_problems
from megacurl.config.fields import flatten
from megacurl.config.presets import PRESETS
from megacurl.config.row_range import file_problems
from megacurl.config.schema import Config
from megacurl.utils.names import nearest_hint

Purpose = Literal["train", "plan"]
"""What a Config is checked for: a run, or a printed layout that needs no data and no weights."""


def validate_config(config: Config, purpose: Purpose = "train") -> None:
    """Raise one ConfigError with every problem of ``config``; see :func:`find_problems`."""
    raise_problems(find_problems(config, purpose))


def find_problems(config: Config, purpose: Purpose = "train") -> list[str]:
    """Return every problem of ``config``, each naming the flag, its value and the fix.

    Values and their combinations are always checked. For ``"train"`` the files and folders that the
    run reads must exist too. What depends on the model's shape is in :mod:`megacurl.config.layout`.
    """
    problems = [*bound_problems(flatten(config))]
    problems += _algorithm_problems(config)
    problems += no_critic_problems(config)
    problems += estimator_problems(config)
    problems += sampling_problems(config)
    problems += _critic_warmup_problems(config)
    problems += _cvpo_problems(config)
    problems += _schedule_problems(config)
    problems += _parallel_problems(config)
    problems += batch_problems(config)
    problems += update_problems(config)
    problems += _token_problems(config)
    problems += _sampling_problems(config)
    problems += _recording_problems(config)
    problems += _server_problems(config)
    if config.data.instruction is not None and "{problem}" not in config.data.instruction:
        problems.append(
            f"--instruction {config.data.instruction!r} has no {{problem}}; put {{problem}} where "
            "the question's text belongs"
        )
    problems += _model_problems(config, purpose)
    if purpose == "train":
        problems += _data_problems(config)
        problems += eval_spec_problems(config.eval.eval_prompt_data, "--eval-prompt-data")
        problems += _run_problems(config)
    return problems


def _algorithm_problems(config: Config) -> Iterator[str]:
    settings = config.algorithm
    if settings.algorithm not in PRESETS:
        hint = nearest_hint(settings.algorithm, PRESETS)
        yield (
            f"--algorithm {settings.algorithm!r} is no preset{hint}; choose one of "
            f"{', '.join(PRESETS)}"
        )
    if settings.reward_wrong >= settings.reward_correct:
        yield (
            f"--reward-wrong {settings.reward_wrong:g} must be below --reward-correct "
            f"{settings.reward_correct:g}"
        )
    if settings.kl_coef > 0 and (settings.kl_placement, settings.kl_estimator) == ("loss", "k1"):
        yield (
            "--kl-estimator k1 with --kl-placement loss has an expected gradient of zero; use "
            "--kl-estimator k2 or k3, or --kl-placement reward"
        )


def _critic_warmup_problems(config: Config) -> Iterator[str]:
    warmup = critic_warmup(config)
    if warmup > config.training.train_iters:
        yield (
            f"--train-iters {config.training.train_iters} ends before --critic-warmup-iters "
            f"{warmup} does, so the policy would never be trained; raise the one or lower the other"
        )
    if config.algorithm.critic_warmup_min_iters > warmup and config.algorithm.use_critic:
        yield (
            f"--critic-warmup-min-iters {config.algorithm.critic_warmup_min_iters} must be at most "
            f"--critic-warmup-iters {warmup}"
        )


def _cvpo_problems(config: Config) -> Iterator[str]:
    settings = config.cvpo
    if settings.ws_alpha_n is None and settings.variance_coefficient > 1:
        yield (
            f"--variance-coefficient {settings.variance_coefficient:g} is also the amplitude for "
            "wrong responses, where above 1 the weight could turn negative; lower it or give "
            "--ws-alpha-n at most 1"
        )
    if settings.trend_low >= settings.trend_high:
        yield (
            f"--trend-low {settings.trend_low:g} must be below --trend-high "
            f"{settings.trend_high:g}: a question cannot be both hard and easy"
        )


def _schedule_problems(config: Config) -> Iterator[str]:
    settings = config.optimizer
    for flag, peak in (("--lr", settings.lr), ("--critic-lr", settings.critic_lr)):
        if settings.min_lr > peak:
            yield f"--min-lr {settings.min_lr:g} must be at most {flag} {peak:g}"
    decay = settings.lr_decay_iters
    if decay is None:
        return
    if settings.lr_decay_style == "constant":
        yield (
            f"--lr-decay-iters {decay} has no effect with --lr-decay-style constant; choose linear "
            "or cosine, or leave it out"
        )
    if decay <= settings.lr_warmup_iters:
        yield (
            f"--lr-decay-iters {decay} must be above --lr-warmup-iters {settings.lr_warmup_iters}, "
            "which it includes"
        )


def _parallel_problems(config: Config) -> Iterator[str]:
    settings = config.parallel
    if settings.sequence_parallel and settings.tensor_model_parallel_size == 1:
        yield (
            "--sequence-parallel splits over the tensor parallel ranks, and "
            "--tensor-model-parallel-size is 1; set it above 1 or drop --sequence-parallel"
        )
    chunk = settings.num_layers_per_virtual_pipeline_stage
    if chunk is not None and settings.pipeline_model_parallel_size == 1:
        yield (
            f"--num-layers-per-virtual-pipeline-stage {chunk} interleaves pipeline stages, and "
            "--pipeline-model-parallel-size is 1; set it above 1 or leave the chunks out"
        )
    if settings.recompute_granularity != "full" and settings.recompute_num_layers != 1:
        yield (
            f"--recompute-num-layers {settings.recompute_num_layers} has no effect with "
            f"--recompute-granularity {settings.recompute_granularity}; set that to full or leave "
            "the number out"
        )


def batch_problems(config: Config) -> list[str]:
    """Return the problems of the batch sizes that hold for any number of ranks."""
    training = config.training
    sequences = training.rollout_batch_size * training.n_samples_per_prompt
    sizes = {
        "--global-batch-size": training.global_batch_size,
        "--critic-global-batch-size": training.critic_global_batch_size,
    }
    return [
        f"{flag} {size} does not divide the {sequences} responses of a rollout "
        f"(--rollout-batch-size {training.rollout_batch_size} x --n-samples-per-prompt "
        f"{training.n_samples_per_prompt}); use a divisor of {sequences}"
        for flag, size in sizes.items()
        if size is not None and size > 0 and sequences % size
    ]


def _server_problems(config: Config) -> Iterator[str]:
    rollout = config.rollout
    engine, urls, launch = rollout.rollout_engine, rollout.rollout_urls, rollout.rollout_launch
    given = f"--rollout-urls {' '.join(urls)}" if urls else ""
    given = given or (f"--rollout-launch {launch}" if launch else "")
    if not engine.endswith("-server"):
        if given:
            yield (
                f"{given} is for servers, and --rollout-engine {engine} generates in the trainer's "
                "processes; leave it out, or take --rollout-engine vllm-server"
            )
        return
    if urls and launch:
        yield (
            f"--rollout-launch {launch} with --rollout-urls {' '.join(urls)}: servers are either "
            "started or given; leave one of them out"
        )
    if not given:
        yield (
            f"--rollout-engine {engine} has no servers; give --rollout-urls http://host:port ..., "
            "or --rollout-launch N to start N on this machine"
        )
    if rollout.rollout_engine_sleep:
        yield (
            f"--rollout-engine-sleep: --rollout-engine {engine} has no memory of the trainer's; "
            "leave it out"
        )
    if not Path(rollout.rollout_transfer_dir).is_dir():
        yield (
            f"--rollout-transfer-dir {rollout.rollout_transfer_dir} is no folder here; give one "
            "that the trainer and its rollout servers both see"
        )


def _token_problems(config: Config) -> Iterator[str]:
    rollout, budget = config.rollout, config.training.max_tokens_per_micro_batch
    longest = rollout.rollout_max_prompt_len + rollout.rollout_max_response_len
    if budget < longest:
        yield (
            f"--max-tokens-per-micro-batch {budget} cannot hold the longest sequence, "
            f"--rollout-max-prompt-len {rollout.rollout_max_prompt_len} + "
            f"--rollout-max-response-len {rollout.rollout_max_response_len} = {longest}; raise it "
            f"to {longest} or shorten those"
        )


def _model_problems(config: Config, purpose: Purpose) -> Iterator[str]:
    model = config.model
    if not model.hf_checkpoint:
        yield "--hf-checkpoint is missing; give the Hugging Face folder of the policy"
    else:
        yield from _checkpoint_problems("--hf-checkpoint", model.hf_checkpoint, purpose)
    if model.critic_hf_checkpoint is not None:
        flag = "--critic-hf-checkpoint"
        yield from _checkpoint_problems(flag, model.critic_hf_checkpoint, purpose)


def _checkpoint_problems(flag: str, folder: str, purpose: Purpose) -> Iterator[str]:
    path = Path(folder)
    if not path.is_dir():
        yield f"{flag} {folder} is no folder on this machine; download the model and give its path"
    elif not (path / "config.json").is_file():
        yield f"{flag} {folder} has no config.json; give the folder that holds the model's files"
    elif purpose == "train" and not any(path.glob("*.safetensors")):
        yield (
            f"{flag} {folder} has a config.json but no *.safetensors; that is enough for --dry-run "
            "only, download the weights to train"
        )


def _sampling_problems(config: Config) -> Iterator[str]:
    settings = config.eval
    if settings.eval_temperature == 0 and settings.n_samples_per_eval_prompt > 1:
        yield (
            "--eval-temperature 0 is greedy, so all --n-samples-per-eval-prompt "
            f"{settings.n_samples_per_eval_prompt} responses would be the same; set that to 1 or "
            "raise the temperature"
        )


def _recording_problems(config: Config) -> Iterator[str]:
    settings = config.rollout
    if settings.save_rollouts is not None and settings.replay_rollouts is not None:
        yield (
            f"--save-rollouts {settings.save_rollouts} and --replay-rollouts "
            f"{settings.replay_rollouts}: a replay generates nothing to save; drop one of the two"
        )


def _data_problems(config: Config) -> Iterator[str]:
    if not config.data.prompt_data:
        yield "--prompt-data is missing; give a jsonl or parquet file of training questions"
        return
    yield from (f"--prompt-data {problem}" for problem in file_problems(config.data.prompt_data))
    if config.data.decontaminate and not config.eval.eval_prompt_data:
        yield (
            "--decontaminate needs evaluation sets to compare with; give them as "
            "--eval-prompt-data, or drop the flag"
        )


def _run_problems(config: Config) -> Iterator[str]:
    run = config.run
    if not run.run_dir:
        yield "--run-dir is missing; give the folder that receives everything the run writes"
    else:
        yield from _run_dir_problems(Path(run.run_dir), run.load)
    if run.load is not None and not Path(run.load).is_dir():
        yield f"--load {run.load} is no folder on this machine; give a run folder or a checkpoint"


def _run_dir_problems(folder: Path, load: str | None) -> Iterator[str]:
    there = next(p for p in (folder, *folder.absolute().parents) if os.path.lexists(p))
    if not there.is_dir():
        what = "is a file" if there == folder else f"is below {there}, which is a file"
        yield f"--run-dir {folder} {what}; give a folder, it is created when missing"
    elif not os.access(there, os.W_OK | os.X_OK):
        yield f"--run-dir {folder}: no permission to write in {there}; give another folder"
    elif _holds_a_run(folder) and not (load and _is_inside(Path(load), folder)):
        other = f", and --load {load} is another one" if load else ""
        yield (
            f"--run-dir {folder} already holds a run{other}; give another folder, or go on with "
            f"that run by --load {folder}"
        )


def _holds_a_run(folder: Path) -> bool:
    """Whether a run has left results there; one that never began has logged nothing."""
    metrics = folder / "metrics.jsonl"
    logged = metrics.is_file() and metrics.stat().st_size > 0
    return logged or any(folder.glob("checkpoints/step_*"))


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
