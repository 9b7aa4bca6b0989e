# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What is checked before a run loads or writes anything: parts by name, model folders, checkpoint.

Settings as such were checked by ``config.plan.plan_run``, which needs neither torch nor registries.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from megacurl.algorithms.estimators.registry import get_estimator
from megacurl.config.errors import ConfigError, refusing
from megacurl.config.schema import Config
from megacurl.curriculum.sampling.registry import get_rule
from megacurl.models.check_hf import check_hf_folder
from megacurl.models.shape import ModelShape
from megacurl.rewards.registry import Verifier, get_verifier, verifier_options
from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.registry import create_engine, engine_class

Shapes = dict[str, ModelShape]
"""Shapes of "actor" and, in a run that has one, "critic"."""


def check_parts(config: Config) -> tuple[Verifier, Shapes]:
    """The verifier and the models' shapes.

    Raises ConfigError for an estimator, a sampling rule, an engine, a verifier or a sink that does
    not exist, is not installed or does not fit the settings, and for a model folder that cannot be
    loaded.
    """
    run, data = config.run, config.data
    _check_estimator(config)
    _check_sampling(config)
    engine = config.rollout.rollout_engine
    with refusing(f"--rollout-engine {engine}", ValueError, ImportError):
        engine_class(engine)
    if run.wandb_project and importlib.util.find_spec("wandb") is None:
        raise ConfigError(
            f"--wandb-project {run.wandb_project} needs the package wandb: pip install "
            "'megacurl[wandb]', or leave the flag out"
        )
    with refusing(f"--verifier {data.verifier}"):
        options = verifier_options(
            require_value=data.require_value,
            symbolic=data.symbolic,
            correct_threshold=data.correct_threshold,
        )
        verifier = get_verifier(data.verifier, **options)
    return verifier, _check_models(config)


def _check_estimator(config: Config) -> None:
    algorithm, samples = config.algorithm, config.training.n_samples_per_prompt
    name = algorithm.advantage_estimator
    with refusing(f"--advantage-estimator {name}"):
        estimator = get_estimator(name)
    if estimator.needs_values and not algorithm.use_critic:
        raise ConfigError(
            f"--advantage-estimator {name} needs the values of a critic, and --no-use-critic "
            "builds none; give --use-critic, or an estimator that needs none"
        )
    if algorithm.use_critic and not (estimator.needs_values or config.cvpo.use_w_s):
        raise ConfigError(
            f"--use-critic: nothing would read its values, --advantage-estimator {name} does not "
            "and --no-use-w-s; give --no-use-critic"
        )
    if estimator.needs_groups and samples < 2:
        raise ConfigError(
            f"--n-samples-per-prompt {samples}: --advantage-estimator {name} compares the "
            "responses to a question with one another; give at least 2"
        )
    in_reward = algorithm.kl_coef > 0 and algorithm.kl_placement == "reward"
    if in_reward and not estimator.kl_in_reward:
        raise ConfigError(
            f"--kl-coef {algorithm.kl_coef:g} with --kl-placement reward does not reach "
            f"--advantage-estimator {name}, which sees one reward a response; use --kl-placement "
            "loss with --kl-estimator k3"
        )


def _check_sampling(config: Config) -> None:
    name, samples = config.sampling.sampling, config.training.n_samples_per_prompt
    with refusing(f"--sampling {name}"):
        rule = get_rule(name)
    if rule.needs_groups and samples < 2:
        raise ConfigError(
            f"--n-samples-per-prompt {samples}: --sampling {name} looks at how the responses to a "
            "question differ; give at least 2"
        )


def _check_models(config: Config) -> Shapes:
    model = config.model
    multiple = model.make_vocab_size_divisible_by
    policy, critic = model.hf_checkpoint, model.critic_hf_checkpoint
    actor = check_hf_folder(policy, "--hf-checkpoint", multiple, skip_head=False)
    if not config.algorithm.use_critic:
        return {"actor": actor}
    if critic is None:
        return {"actor": actor, "critic": actor}
    flag = "--critic-hf-checkpoint"
    return {"actor": actor, "critic": check_hf_folder(critic, flag, multiple, skip_head=True)}


def make_engine(config: Config, shapes: Shapes, device: str, rank: int) -> RolloutEngine:
    """A rank's rollout engine, not started: it has looked at its settings and at config.json.

    Raises ConfigError for a setting that the engine lacks or that the model does not allow.
    """
    rollout = config.rollout
    longest_response = max(rollout.rollout_max_response_len, config.eval.eval_max_response_len or 0)
    with refusing(f"--rollout-engine {rollout.rollout_engine}"):
        server = {}
        if engine_class(rollout.rollout_engine).is_client:
            server = {
                "urls": rollout.rollout_urls,
                "leader": rank == 0,
                "transfer_dir": rollout.rollout_transfer_dir,
            }
        return create_engine(
            rollout.rollout_engine,
            model=config.model.hf_checkpoint,
            load_weights=False,
            dtype="bfloat16" if config.model.bf16 else "float32",
            device=device,
            max_model_len=min(
                rollout.rollout_max_prompt_len + longest_response,
                shapes["actor"].max_position_embeddings,
            ),
            max_batch_size=rollout.rollout_max_batch_size,
            # A launched server has it as its own setting.
            kv_cache_mb=None if server else rollout.rollout_kv_cache_mb,
            **server,
        )


def check_same_model(state: Mapping[str, Any], shapes: Shapes, loaded: Path) -> None:
    """Refuse a checkpoint of models with other shapes, or of other models.

    Args:
        state: what the checkpoint's run.json holds.
        shapes: those of the present run.
        loaded: the checkpoint, for the message.
    """
    there = state.get("shapes", shapes)
    if there.keys() != shapes.keys():
        have = {True: "has a critic", False: "has none"}
        raise ConfigError(
            f"--load {loaded} {have['critic' in there]}, this run {have['critic' in shapes]}; give "
            "the --algorithm that its run had (see its config.yaml), or start anew from its policy "
            "(megacurl export)"
        )
    for role, saved in there.items():
        mine = dataclasses.asdict(shapes[role])
        other = [name for name in mine if saved.get(name) != mine[name]]
        if other:
            names = ", ".join(f"{n} {saved.get(n)} instead of {mine[n]}" for n in other)
            raise ConfigError(
                f"--load {loaded} is of another model than this run's {role}, with {names}; give "
                "the --hf-checkpoint (and --critic-hf-checkpoint) that its run had, see its "
                "config.yaml"
            )
