# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""All presets on the tiny task with the same number of sampled responses: accuracy and cost.

Every preset, and what the CVPO paper leaves open, trains the tiny base model with several seeds;
held-out accuracy (avg@16) is taken when 1,280 and 3,840 responses have been sampled: a system that
throws responses away, as dynamic sampling does, gets fewer steps for them. The settings are those
of examples/run_cvpo_tiny.sh, the same learning rates for all.

    python benchmarks/tiny_table.py --output DIR [--base DIR] [--jobs 2] [--only grpo cvpo]

An hour on one core (a minute a training). DIR keeps the record of every training; started again,
it goes on where it was, and prints the tables of docs/results_tiny.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from tiny_plan import BASE, SYSTEMS, VARIANTS, Record, Training
from tiny_report import tables

HERE = Path(__file__).resolve().parent


def make_base(folder: Path) -> None:
    """The tiny base model, unless it is there."""
    if not (folder / "config.json").is_file():
        maker = HERE.parent / "examples" / "models" / "make_tiny_base.py"
        subprocess.run([sys.executable, str(maker), "--output", str(folder)], check=True)


def plan(arguments: argparse.Namespace) -> dict[Path, Training]:
    """All trainings by the file of their record, seed by seed: early tables compare equals."""
    names = arguments.only or [system.name for system in (*SYSTEMS, *VARIANTS)]
    systems = {system.name: system for system in (*SYSTEMS, *VARIANTS)}
    trainings = {}
    for seed in arguments.seeds:
        for system in (BASE, *(systems[name] for name in names)):
            folder = arguments.output / f"{system.name.replace(' ', '_').replace(',', '')}-{seed}"
            budgets = (0,) if system is BASE else tuple(sorted(arguments.budgets))
            training = Training(system, seed, budgets, str(arguments.base), str(folder / "run"))
            trainings[folder / "record.json"] = training
    return trainings


def run(training: Training, file: Path) -> Record:
    """Train in a process of its own; its output is kept beside the record."""
    file.parent.mkdir(parents=True, exist_ok=True)
    log = file.with_name("log.txt")
    passive = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, str(HERE / "tiny_training.py"), json.dumps(asdict(training))]
    # An interrupted training left a run folder that a new run would refuse.
    for old in sorted((file.parent / "run").glob("**/*"), reverse=True):
        old.rmdir() if old.is_dir() else old.unlink()
    environment = {**os.environ, **passive}
    with log.open("w") as output:
        command = [*command, str(file)]
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    if done.returncode:
        raise RuntimeError(f"{training.system.name}, seed {training.seed} failed: see {log}")
    return Record.load(file)


def run_all(trainings: dict[Path, Training], jobs: int) -> list[Record]:
    """The records, those of earlier calls included."""
    records = [Record.load(file) for file in trainings if file.is_file()]
    missing = {file: training for file, training in trainings.items() if not file.is_file()}
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(run, training, file) for file, training in missing.items()]
        try:
            for future in as_completed(futures):
                records.append(future.result())
                last = records[-1]
                print(
                    f"[{len(records)}/{len(trainings)}] {last.name}, seed {last.seed}: "
                    f"avg@16 {last.scores[-1].accuracy():.3f}",
                    file=sys.stderr,
                    flush=True,
                )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return sorted(records, key=lambda record: record.seed)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [system.name for system in (*SYSTEMS, *VARIANTS)]
    parser.add_argument("--output", type=Path, required=True, help="folder of the records")
    parser.add_argument("--base", type=Path, help="base model; default: made in the output folder")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--budgets", type=int, nargs="+", default=[1280, 3840], metavar="RESPONSES")
    parser.add_argument("--only", nargs="+", choices=names, metavar="SYSTEM", help=", ".join(names))
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time, a core each")
    arguments = parser.parse_args()
    if arguments.jobs < 1 or min(arguments.budgets) < 1:
        parser.error("--jobs and --budgets must be at least 1")
    arguments.base = (arguments.base or arguments.output / "base").resolve()
    return arguments


def main() -> None:
    """Entry point."""
    arguments = parse_arguments()
    make_base(arguments.base)
    trainings = plan(arguments)
    try:
        records = run_all(trainings, arguments.jobs)
    except RuntimeError as error:
        sys.exit(f"error: {error}")
    names = list(dict.fromkeys(t.system.name for t in trainings.values() if t.system is not BASE))
    print(tables(records, names, sorted(arguments.budgets)))


if __name__ == "__main__":
    main()
