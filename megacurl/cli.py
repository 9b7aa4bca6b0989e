# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The commands of ``megacurl``: parse, check, and only then import what works.

Nothing here imports torch, so ``--help``, ``--dry-run`` and every refused command line take a
fraction of a second. All ranks of a torchrun start leave with the same exit code; rank 0 speaks.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import tyro

from megacurl import __version__
from megacurl.config.errors import ConfigError, raise_problems
from megacurl.config.eval_specs import eval_spec_problems
from megacurl.config.layout_format import format_layout
from megacurl.config.load import (
    TrainArguments,
    is_first_rank,
    only_first_rank_prints,
    parse_train,
    unknown_argument_problems,
)
from megacurl.config.plan import plan_run
from megacurl.config.preset_help import preset_help
from megacurl.data.load import load_prompts
from megacurl.divergence import DivergenceError
from megacurl.evaluation.question_set import read_question_sets
from megacurl.evaluation.settings import EvalArguments, read_inputs
from megacurl.sync.settings import PLAN_HELP, PlanArguments, check_plan_arguments
from megacurl.utils.names import nearest_hint

_USAGE_ERROR, _DIVERGED = 2, 3
_SILENT_RANK_DELAY_S = 2.0

_HELP = f"""\
MegaCURL {__version__}: reinforcement learning of reasoning language models with a critic.

usage: megacurl COMMAND [OPTIONS]

  train         run the loop: roll out, verify, update critic and policy
                  megacurl train --hf-checkpoint MODEL --prompt-data q.jsonl --run-dir runs/first
  eval          score a model on benchmark files: avg@k, pass@k, maj@k with intervals
                  megacurl eval --model runs/first --data aime24=aime24.jsonl --output scores
  data inspect  count what a file of questions holds before anyone trains on it
                  megacurl data inspect questions.parquet
  plan          say which ranks send how much of the weights to rollout engines
                  megacurl plan --hf-checkpoint MODEL --world-size 64 --rollout-engines 8
  export        write the policy of a run as a Hugging Face folder
                  megacurl export --load runs/first --output first-hf
  doctor        say what is installed, and how each operator runs on this machine

megacurl COMMAND --help explains a command and lists its options. On more than one GPU or node
torchrun starts train and eval: torchrun --nproc-per-node 8 -m megacurl train ...
"""

ArgumentsT = TypeVar("ArgumentsT")


@dataclass(frozen=True)
class _InspectArguments:
    file: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    """The .jsonl or .parquet file; "FILE@[0:500]" takes a slice of its rows."""
    prompt_key: str | None = None
    """Column of the question; default: the usual names."""
    answer_key: str | None = None
    """Column of the answer; default: the usual names."""
    decontaminate: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=FILE")] = ()
    """Also count the questions that these benchmark files ask, as training would leave them out."""


@dataclass(frozen=True)
class _ExportArguments:
    load: Annotated[str, tyro.conf.arg(metavar="RUN")]
    """Run folder, or one checkpoint of it."""
    output: Annotated[str, tyro.conf.arg(metavar="DIR")]
    """Folder to create."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (default: ``sys.argv``) and return its exit code.

    0, 2 for bad input, 3 for a training run that has diverged. SystemExit passes through from
    ``--help`` (0) and from values that tyro refused (2); any other error keeps its traceback.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        with _first_rank_leaves_first():
            return _dispatch(arguments)
    except ConfigError as error:
        return _refuse(error.problems)
    except DivergenceError as error:
        return _refuse(error.problems, _DIVERGED)
    except (FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError) as error:
        return _refuse([str(error)])
    except BrokenPipeError:
        # `megacurl train --help | head`: the reader has gone. Python would complain on exit too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(arguments: list[str]) -> int:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if command in ("--help", "-h"):
        _say(_HELP.rstrip())
        return 0
    if command == "--version":
        _say(f"megacurl {__version__}")
        return 0
    if command not in _COMMANDS:
        raise ConfigError(_unknown(command, "command", _COMMANDS))
    return _COMMANDS[command](rest)


def _train(argv: list[str]) -> int:
    arguments = parse_train(argv)
    if arguments.help_algorithm is not None:
        _say(preset_help(arguments.help_algorithm))
        return 0
    if arguments.dry_run:
        return _dry_run(arguments)
    if arguments.world_size is not None:
        raise ConfigError(
            f"--world-size {arguments.world_size} only goes with --dry-run; a run has as many "
            "ranks as torchrun starts (--nnodes x --nproc-per-node)"
        )
    with _every_machine_speaks():
        plan_run(arguments.settings, _environment_int("WORLD_SIZE") or 1)
    from megacurl.train import main as train

    train(arguments.settings)
    return 0


def _dry_run(arguments: TrainArguments) -> int:
    config, world_size = arguments.settings, arguments.world_size
    if world_size is None:
        parallel = config.parallel
        smallest = parallel.tensor_model_parallel_size * parallel.pipeline_model_parallel_size
        world_size = _environment_int("WORLD_SIZE") or smallest
    _say(format_layout(plan_run(config, world_size, "plan"), config))
    return 0


def _eval(argv: list[str]) -> int:
    description = (
        "Score a model on benchmark files: avg@k, pass@k and maj@k with 95% intervals.\n\n"
        "Examples:\n"
        "  megacurl eval --model MODEL --data aime24=aime24.jsonl math500.jsonl --output scores\n"
        "  torchrun --nproc-per-node 8 -m megacurl eval --model runs/first --bf16 \\\n"
        "    --data aime24.jsonl --output scores --preset-sampling r1 --max-response-len 20480"
    )
    arguments = _parse(EvalArguments, "megacurl eval", description, argv)
    with _every_machine_speaks():
        sets = read_inputs(arguments)
    from megacurl.eval_command import main as evaluate

    evaluate(arguments, sets)
    return 0


def _data(argv: list[str]) -> int:
    action, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if action in ("--help", "-h"):
        _say("usage: megacurl data inspect FILE\n\nExample: megacurl data inspect questions.jsonl")
        return 0
    if action != "inspect":
        raise ConfigError(_unknown(action, "action of megacurl data", ("inspect",)))
    description = (
        "Count rows, duplicates, contradicting answers and answer kinds of a file of questions.\n\n"
        "Examples:\n"
        "  megacurl data inspect questions.parquet\n"
        '  megacurl data inspect "questions.jsonl@[0:500]" --answer-key solution\n'
        "  megacurl data inspect questions.parquet --decontaminate amc23.jsonl math500.jsonl"
    )
    arguments = _parse(_InspectArguments, "megacurl data inspect", description, rest)
    raise_problems(eval_spec_problems(arguments.decontaminate, "--decontaminate"))
    from megacurl.data.inspect import format_inspection, inspect_file
    from megacurl.evaluation.decontaminate import format_overlap

    file, prompt_key, answer_key = arguments.file, arguments.prompt_key, arguments.answer_key
    _say(format_inspection(inspect_file(file, prompt_key=prompt_key, answer_key=answer_key)))
    if arguments.decontaminate:
        sets = read_question_sets(arguments.decontaminate, "--decontaminate", None)
        prompts = load_prompts(file, dedupe="text", prompt_key=prompt_key, answer_key=answer_key)
        _say(format_overlap(prompts, sets))
    return 0


def _plan(argv: list[str]) -> int:
    arguments = _parse(PlanArguments, "megacurl plan", PLAN_HELP, argv)
    check_plan_arguments(arguments)
    from megacurl.plan_command import main as plan

    _say(plan(arguments))
    return 0


def _export(argv: list[str]) -> int:
    description = (
        "Write the policy of a run as a Hugging Face folder (safetensors, config, tokenizer).\n\n"
        "Examples:\n"
        "  megacurl export --load runs/first --output first-hf\n"
        "  megacurl export --load runs/first/checkpoints/step-200 --output step-200-hf"
    )
    arguments = _parse(_ExportArguments, "megacurl export", description, argv)
    from megacurl.export import main as export

    export(load=arguments.load, output=arguments.output)
    return 0


def _doctor(argv: list[str]) -> int:
    if argv in (["--help"], ["-h"]):
        _say("usage: megacurl doctor\n\nSay what is installed, and how each operator runs here.")
        return 0
    raise_problems(unknown_argument_problems(argv, []))
    from megacurl.doctor import main as report

    _say(report())
    return 0


_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": _train,
    "eval": _eval,
    "data": _data,
    "plan": _plan,
    "export": _export,
    "doctor": _doctor,
}


def _parse(kind: type[ArgumentsT], prog: str, description: str, argv: list[str]) -> ArgumentsT:
    with only_first_rank_prints():
        arguments, unknown = tyro.cli(
            kind, prog=prog, description=description, args=argv, return_unknown_args=True
        )
    flags = ["--" + name.replace("_", "-") for name in kind.__dataclass_fields__]  # type: ignore[attr-defined]
    raise_problems(unknown_argument_problems(unknown, flags))
    return arguments


def _unknown(word: str, what: str, known: Sequence[str] | dict[str, Any]) -> str:
    return f"{word!r} is no {what}{nearest_hint(word, known)}; choose one of {', '.join(known)}"


def _environment_int(name: str) -> int | None:
    value = os.environ.get(name, "")
    if not value:
        return None
    if not value.isdigit():
        raise ConfigError(f"environment variable {name} is {value!r}, must be a positive integer")
    return int(value)


@contextmanager
def _first_rank_leaves_first() -> Iterator[None]:
    """Delay a refusal on the silent ranks of torchrun.

    It stops all ranks as soon as one has failed, so rank 0 could be stopped before it has printed.
    """
    try:
        yield
    except (ConfigError, DivergenceError, SystemExit):
        if not is_first_rank() and "TORCHELASTIC_RUN_ID" in os.environ:
            time.sleep(_SILENT_RANK_DELAY_S)
        raise


@contextmanager
def _every_machine_speaks() -> Iterator[None]:
    """Let the first rank of every node say what is missing there: files differ between machines."""
    try:
        yield
    except ConfigError as error:
        if not is_first_rank() and os.environ.get("LOCAL_RANK") == "0":
            _print_problems(error.problems)
        raise


def _say(text: str) -> None:
    if is_first_rank():
        print(text, flush=True)


def _refuse(problems: Sequence[str], code: int = _USAGE_ERROR) -> int:
    if is_first_rank():
        _print_problems(problems)
    return code


def _print_problems(problems: Sequence[str]) -> None:
    for problem in problems:
        print(f"megacurl: {problem}", file=sys.stderr, flush=True)
