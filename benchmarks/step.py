# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Time of a training step of the tiny run against PPO with a critic in plain PyTorch.

MegaCURL's step (its real training loop) and the plain one (plain_ppo.py) run in one process turn by
turn, so that a busy machine slows both alike, on the same prompts and the same responses; then the
same with two data parallel processes. ``--clock cpu`` counts what the process itself computed: the
fairer one on a shared machine, but blind to waiting.

    python benchmarks/step.py [--base DIR] [--algorithm ppo] [--clock cpu] [--rounds 8]

DIR is what examples/models/make_tiny_base.py makes, in two minutes. Without it the same model with
random weights answers: one token in twenty ends a response, and a coin decides if it is right.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from step_plan import PHASES, Round, StepBench, Turn, load_rounds

HERE = Path(__file__).resolve().parent
EOS_IDS = list(range(400, 425))  # of 512 about equally likely tokens: responses of 20 on average


def make_random_base(folder: Path) -> None:
    """The tiny base model with random weights, whose responses are as long as the trained one's."""
    maker = HERE.parent / "examples" / "models" / "make_tiny_base.py"
    arguments = ["--output", str(folder), "--steps", "0", "--eval-samples", "0"]
    command = [sys.executable, str(maker), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "eos_token_id": EOS_IDS}))


def run_world(bench: StepBench, processes: int, scratch: Path) -> list[Round]:
    """The rounds of ``bench`` in a world of its own."""
    bench = dataclasses.replace(bench, run_dir=str(scratch / f"run{processes}"))
    result = scratch / f"rounds{processes}.json"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    worker = [str(HERE / "step_rounds.py"), json.dumps(dataclasses.asdict(bench)), str(result)]
    # A thread that waits must not spin: it would take the time of the one that it waits for.
    passive = {"OMP_NUM_THREADS": str(bench.threads), "OMP_WAIT_POLICY": "PASSIVE"}
    environment = {**os.environ, **passive, "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, *(launcher if processes > 1 else []), *worker]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment)
    if done.returncode:
        sys.exit(f"error: {processes} process(es) ended with code {done.returncode}, see above")
    return load_rounds(result)


def phase_rows(rounds: list[Round]) -> list[tuple[str, float, float]]:
    """(phase, MegaCURL's seconds, plain's) and the whole step last; medians over the rounds."""

    def middle(contender: str, phase: str) -> float:
        turns: list[Turn] = [getattr(r, contender) for r in rounds]
        if phase == "step":
            return median(t.step for t in turns)
        return median(t.outside if phase == "outside" else t.seconds[phase] for t in turns)

    names = (*PHASES, "outside", "step")
    return [(name, middle("megacurl", name), middle("plain", name)) for name in names]


def ratios(rounds: list[Round]) -> list[float]:
    """MegaCURL's step over plain's, round by round, sorted."""
    return sorted(r.megacurl.step / r.plain.step for r in rounds)


def report(bench: StepBench, processes: int, rounds: list[Round]) -> str:
    """The table of one world."""
    tokens = median(r.tokens for r in rounds)
    lines = [
        f"{processes} process(es) of {bench.threads} thread(s), {bench.clock} clock, "
        f"{bench.algorithm}: {bench.prompts} prompts x {bench.samples}, {tokens:.0f} tokens a "
        f"step, median of {len(rounds)}",
        f"{'phase':10s} {'MegaCURL':>10s} {'plain':>10s} {'ratio':>6s}",
    ]
    for name, ours, theirs in phase_rows(rounds):
        ratio = f"{ours / theirs:5.2f}x" if theirs > 0 and name != "outside" else ""
        lines.append(f"{name:10s} {ours * 1e3:7.0f} ms {theirs * 1e3:7.0f} ms {ratio:>6s}")
    by_round = ratios(rounds)
    outside = median(r.megacurl.outside / r.megacurl.step for r in rounds)
    lines.append(
        f"step against plain: {median(by_round):.2f}x ({by_round[0]:.2f} to {by_round[-1]:.2f} by "
        f"round); outside of the phases: {outside:.1%}"
    )
    return "\n".join(lines)


def scaling(one: list[Round], many: list[Round], processes: int) -> str:
    """How much of one process's time a step takes on several, per token."""

    def per_token(rounds: list[Round]) -> tuple[float, float]:
        ours = median(r.megacurl.step / r.tokens for r in rounds)
        return ours, median(r.plain.step / r.tokens for r in rounds)

    (ours, theirs), (ours_alone, theirs_alone) = per_token(many), per_token(one)
    return (
        f"{processes} processes against 1, time a token: "
        f"MegaCURL {ours / ours_alone:.2f}x, plain {theirs / theirs_alone:.2f}x"
    )


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, help="model and questions; default: random weights")
    parser.add_argument(
        "--algorithm",
        choices=("cvpo", "ppo"),
        default="cvpo",
        help="MegaCURL's; ppo is the same computation as the plain one, cvpo does more",
    )
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--threads", type=int, default=1, help="of every process")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--samples", type=int, default=8, help="responses to a prompt")
    parser.add_argument("--max-response", type=int, default=48)
    arguments = parser.parse_args()
    for name in ("rounds", "threads", "prompts", "samples", "max_response"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if min(arguments.processes) < 1 or max(arguments.processes) > arguments.prompts:
        parser.error("--processes must be from 1 to the number of prompts")
    for name in ("config.json", "train.jsonl"):
        if arguments.base is not None and not (arguments.base / name).is_file():
            parser.error(f"--base {arguments.base} has no {name}")
    return arguments


def main() -> None:
    """Print a table for every number of processes."""
    chosen = vars(parse_arguments())
    base, processes = chosen.pop("base"), chosen.pop("processes")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        verifier = "math"
        if base is None:
            base, verifier = scratch / "base", "coin_flip"
            make_random_base(base)
        bench = StepBench(base=str(base.resolve()), run_dir="", verifier=verifier, **chosen)
        found: dict[int, list[Round]] = {}
        for count in processes:
            found[count] = run_world(bench, count, scratch)
            print(report(bench, count, found[count]))
            if count > 1 and 1 in found:
                print(scaling(found[1], found[count], count))
            print(flush=True)


if __name__ == "__main__":
    main()
