# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The whole check before a run: values, files, model shapes and layout, all problems at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from megacurl.config.bounds import bound_problems
from megacurl.config.decoder_size import read_hf_config
from megacurl.config.errors import ConfigError
from megacurl.config.fields import flatten
from megacurl.config.layout import Layout, resolve_layout
from megacurl.config.schema import Config
from megacurl.config.validate import Purpose, find_problems


def plan_run(config: Config, world_size: int, purpose: Purpose = "train") -> Layout:
    """Check ``config`` for ``world_size`` ranks and return its layout.

    Raises one ConfigError with everything that is wrong. The layout is looked at only when single
    values are in range and the config.json files are readable; without them it has no meaning.
    """
    problems = find_problems(config, purpose)
    layout: Layout | None = None
    if _models_exist(config) and not any(bound_problems(flatten(config))):
        try:
            layout = _layout(config, world_size)
        except ConfigError as error:
            problems += error.problems
    if layout is not None:
        problems += _length_problems(config, layout)
    if problems or layout is None:
        raise ConfigError(dict.fromkeys(problems))
    return layout


def _length_problems(config: Config, layout: Layout) -> Iterator[str]:
    """Sequences that the rollout engine would have to refuse in the middle of a run."""
    positions = layout.actor.shape.max_position_embeddings
    if positions is None:
        return
    prompt, lengths = config.rollout.rollout_max_prompt_len, {}
    lengths["--rollout-max-response-len"] = config.rollout.rollout_max_response_len
    if config.eval.eval_prompt_data and config.eval.eval_max_response_len is not None:
        lengths["--eval-max-response-len"] = config.eval.eval_max_response_len
    for flag, length in lengths.items():
        if prompt + length > positions:
            yield (
                f"--rollout-max-prompt-len {prompt} plus {flag} {length} is {prompt + length} "
                f"tokens, but the model has {positions} positions; lower one of the two"
            )


def _models_exist(config: Config) -> bool:
    folders = (config.model.hf_checkpoint, config.model.critic_hf_checkpoint)
    return all(Path(folder, "config.json").is_file() for folder in folders if folder is not None)


def _layout(config: Config, world_size: int) -> Layout:
    model = config.model
    critic = model.critic_hf_checkpoint
    return resolve_layout(
        config,
        world_size,
        read_hf_config(model.hf_checkpoint),
        None if critic is None else read_hf_config(critic, "--critic-hf-checkpoint"),
    )
