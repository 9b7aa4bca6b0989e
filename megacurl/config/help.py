# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl train --help``: the common flags first, then the others by section, a line each."""

from __future__ import annotations

import re
import shutil
import textwrap
import typing
from collections.abc import Mapping
from types import NoneType

from megacurl.config.fields import FieldSpec, field_specs, flatten, help_texts, section_types
from megacurl.config.presets import PRESETS
from megacurl.config.schema import Config

_LEFT = 38

COMMON = (
    *("hf_checkpoint", "prompt_data", "run_dir", "algorithm", "load", "train_iters"),
    *("rollout_batch_size", "n_samples_per_prompt", "global_batch_size"),
    *("rollout_max_prompt_len", "rollout_max_response_len", "max_tokens_per_micro_batch"),
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "sequence_parallel", "bf16"),
    *("lr", "critic_lr", "critic_warmup_iters", "eval_prompt_data", "eval_interval"),
    *("save_interval",),
)
"""Settings that most runs give, in the order of the help."""

_METAVARS = {
    **dict.fromkeys(("hf_checkpoint", "critic_hf_checkpoint", "run_dir", "load"), "DIR"),
    **dict.fromkeys(("save_rollouts", "replay_rollouts"), "DIR"),
    "prompt_data": "FILE",
    "eval_prompt_data": "[NAME=]FILE ...",
    "rollout_urls": "URL ...",
    "instruction": "TEXT",
}

_HEAD = f"""\
usage: megacurl train [OPTIONS]

Train a policy and its critic. One process runs this on every rank.

  megacurl train --hf-checkpoint MODEL --prompt-data questions.jsonl \\
    --run-dir runs/first
  torchrun --nproc-per-node 8 -m megacurl train --config run.yaml \\
    --tensor-model-parallel-size 4

A setting comes from the flag if given, else from --config, else from the
--algorithm preset, else from the default. Defaults, in brackets, include preset
and file. docs/configuration.md has the whole text of every flag,
docs/training.md which ones a task needs.

{textwrap.fill("Presets: " + ", ".join(PRESETS), 79)}
"""

_OWN = (
    ("-h, --help", "Show this text"),
    ("--config FILE", "YAML file of settings, as RUN/config.yaml"),
    ("--help-algorithm NAME", "Print a preset's numbers and their sources"),
    ("--[no-]dry-run", "Print the layout and its memory, and stop"),
    ("--world-size N", "With --dry-run: number of ranks"),
)


def train_help(defaults: Config, width: int | None = None) -> str:
    """Return the text; ``defaults`` are what a flag that is left out would be.

    ``width``: columns to fit into; default: those of the terminal, 80 to 120.
    """
    width = width or min(max(shutil.get_terminal_size((100, 24)).columns, 80), 120)
    values, specs = flatten(defaults), field_specs()
    blocks = [_HEAD.rstrip(), "\n".join(["this command", *(_line(*own) for own in _OWN)])]
    blocks.append(_block("common", [specs[name] for name in COMMON], values, width))
    for section in section_types():
        rest = [s for s in specs.values() if s.section == section and s.name not in COMMON]
        about = _first_words(help_texts()[f"section:{section}"], width - len(section) - 2)
        if rest:
            blocks.append(_block(f"{section}: {about}", rest, values, width))
    return "\n\n".join(blocks)


def _block(title: str, specs: list[FieldSpec], values: Mapping[str, object], width: int) -> str:
    lines = [title]
    for spec in specs:
        flag, default = _flag(spec), _default(values[spec.name])
        room = width - len(_line(flag, "")) - len(default) - bool(default)
        text = _first_words(help_texts()[spec.name], room)
        lines.append(_line(flag, f"{text} {default}".rstrip()))
    return "\n".join(lines)


def _line(flag: str, text: str) -> str:
    return f"  {flag:<{_LEFT - 4}}  {text}"


def _flag(spec: FieldSpec) -> str:
    if spec.type is bool:
        return "--[no-]" + spec.flag.removeprefix("--")
    room = _LEFT - 4 - len(spec.flag) - 1
    return f"{spec.flag} {_metavar(spec.name, spec.type, room)}"


def _metavar(name: str, kind: typing.Any, room: int) -> str:
    arguments = [a for a in typing.get_args(kind) if a is not NoneType]
    if name in _METAVARS:
        return _METAVARS[name]
    if typing.get_origin(kind) is typing.Literal:
        choices = "|".join(map(str, arguments))
        return choices if len(choices) <= room else "MODE"
    if typing.get_origin(kind) is tuple:
        return " ".join(_metavar(name, a, room) for a in arguments)
    if arguments:
        return _metavar(name, arguments[0], room)
    return {int: "N", float: "X", str: "NAME"}[kind]


def _default(value: object) -> str:
    if value is None or value == "" or value == ():
        return ""
    if isinstance(value, bool):
        return f"[{'on' if value else 'off'}]"
    if isinstance(value, tuple):
        return f"[{' '.join(map(str, value))}]"
    return f"[{value}]"


def _first_words(text: str, room: int) -> str:
    """The first sentence; where that is too long, up to the end of a clause that fits."""
    sentence = re.split(r"\. (?=[A-Za-z])", " ".join(text.split()))[0].removesuffix(".")
    if len(sentence) <= room:
        return sentence
    for end in ("; ", r"(?<!default): ", r" \("):  # "default: " belongs to what follows
        places = [match.start() for match in re.finditer(end, sentence)]
        if places and places[0] <= room:
            return sentence[: max(place for place in places if place <= room)]
    return textwrap.shorten(sentence, room, placeholder=" …")
