# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""From a command line to one Config: schema defaults < algorithm preset < YAML file < flags."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Annotated

import tyro

from megacurl.config.errors import ConfigError, raise_problems
from megacurl.config.fields import field_specs, flag_name, flatten, unflatten
from megacurl.config.help import train_help
from megacurl.config.presets import preset_values
from megacurl.config.schema import Config
from megacurl.config.yaml_file import load_yaml
from megacurl.utils.names import nearest_hint


@dataclass(frozen=True)
class TrainArguments:
    """A parsed ``megacurl train`` line: the settings, and what to do with them."""

    config: str | None = None
    """YAML file of settings, sits between preset and flags. RUN/config.yaml repeats a run."""
    help_algorithm: str | None = None
    """Print the numbers of this preset with their sources, and stop."""
    dry_run: bool = False
    """Print the layout (ranks, stages, memory, batches) and stop; config.json is all it reads."""
    world_size: int | None = None
    """With --dry-run: number of ranks; default: $WORLD_SIZE, else tensor x pipeline parallel."""
    settings: Annotated[Config, tyro.conf.arg(name="")] = field(default_factory=Config)


@dataclass(frozen=True)
class _Sources:
    """The two flags that choose the defaults of all others."""

    config: str | None = None
    algorithm: str | None = None


def parse_train(argv: Sequence[str]) -> TrainArguments:
    """Parse the arguments after ``megacurl train``; values are typed but not yet validated.

    Raises ConfigError for unknown flags, YAML keys and presets (naming the nearest name).
    SystemExit(0) follows ``--help``; SystemExit(2) follows a flag value of the wrong type, after
    tyro has printed flag, value and what is allowed. Ranks above 0 of torchrun print nothing.
    """
    with only_first_rank_prints():
        sources, _ = tyro.cli(
            _Sources, prog="megacurl train", args=argv, return_unknown_args=True, add_help=False
        )
    defaults = TrainArguments(settings=resolve_defaults(sources.algorithm, sources.config))
    if "-h" in argv or "--help" in argv:
        if is_first_rank():
            print(train_help(defaults.settings), flush=True)
        raise SystemExit(0)
    with only_first_rank_prints():
        arguments, unknown = tyro.cli(
            TrainArguments,
            prog="megacurl train",
            args=argv,
            default=defaults,
            return_unknown_args=True,
            config=(tyro.conf.OmitArgPrefixes,),
        )
    raise_problems(unknown_argument_problems(unknown, train_flags()))
    return arguments


def parse_args(argv: Sequence[str]) -> Config:
    """Return the Config of the arguments after ``megacurl train``; see :func:`parse_train`."""
    return parse_train(argv).settings


def resolve_defaults(algorithm: str | None = None, config_file: str | None = None) -> Config:
    """Return defaults, overlaid by the preset, overlaid by the YAML file.

    The preset is ``algorithm`` (the flag) if given, else the file's, else the schema's. Raises
    ConfigError if the file names another algorithm than the flag and pins numbers that the flag's
    preset sets differently: the run would bear one algorithm's name and compute another's.
    """
    from_file = load_yaml(config_file) if config_file is not None else {}
    default = str(field_specs()["algorithm"].default)
    chosen = algorithm if algorithm is not None else str(from_file.get("algorithm", default))
    preset = preset_values(chosen)
    if algorithm is not None and algorithm != from_file.get("algorithm", algorithm):
        _refuse_mixed_algorithms(algorithm, preset, from_file, str(config_file))
    return unflatten({**preset, **from_file, "algorithm": chosen})


def _refuse_mixed_algorithms(
    algorithm: str, preset: Mapping[str, object], from_file: Mapping[str, object], file: str
) -> None:
    written_for = str(from_file["algorithm"])
    wanted = {**flatten(Config()), **preset}
    touched = {*preset, *preset_values(written_for)}
    pinned = [name for name in from_file if name in touched and from_file[name] != wanted[name]]
    if pinned:
        raise ConfigError(
            f"--algorithm {algorithm} contradicts {file}, which is for {written_for!r} and sets "
            f"{', '.join(pinned)}; remove those keys from the file, or drop --algorithm and give "
            "what should change as flags"
        )


def train_flags() -> list[str]:
    """Return every flag of ``megacurl train`` except ``--help``, ``--no-`` forms included."""
    switches = {"dry_run"} | {name for name, spec in field_specs().items() if spec.type is bool}
    names = ["config", "help_algorithm", "dry_run", "world_size", *field_specs()]
    negated = [flag_name(f"no_{name}") for name in names if name in switches]
    return [flag_name(name) for name in names] + negated


def unknown_argument_problems(unknown: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Turn the arguments that tyro could not place into messages that name the nearest flag.

    A value that follows an unknown flag belongs to it and is not reported again.
    """
    problems: list[str] = []
    in_unknown_flag = False
    for argument in unknown:
        if argument.startswith("-"):
            name = argument.split("=", 1)[0]
            problems.append(f"{name} is no flag{nearest_hint(name, flags)}; --help lists all")
            in_unknown_flag = True
        elif not in_unknown_flag:
            problems.append(
                f"unexpected argument {argument!r}; every setting is a flag, and a switch takes no "
                "value (--bf16, --no-bf16)"
            )
    return problems


@contextmanager
def only_first_rank_prints() -> Iterator[None]:
    """Silence what is printed inside on all ranks but 0; exceptions pass through.

    tyro has a ``console_outputs`` switch, but its errors about values do not honour it.
    """
    if is_first_rank():
        yield
        return
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def is_first_rank() -> bool:
    """Whether this process is rank 0, or not under torchrun at all."""
    return os.environ.get("RANK", "0") in ("0", "")
