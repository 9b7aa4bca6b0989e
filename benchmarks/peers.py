# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""GRPO on the tiny model against TRL's GRPOTrainer: samples per second, and learning curves.

Both train the same model on the same questions with the same reward and settings, in one and in two
processes. All are started together and take a few steps in turn, so that a busy machine slows them
alike. ``--clock cpu`` counts what a process itself computed: fairer still on a busy machine,
but blind to waiting. TRL runs in an environment of its own, which is made at the first start.

    python benchmarks/peers.py [--base DIR] [--seeds 1 2 3] [--steps 40]

DIR is what examples/models/make_tiny_base.py makes; without it, it is made first, in two minutes.
OUTPUT then holds peers.json with every step, peers.md (the section of docs/performance.md) and what
the trainers printed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from peer_environment import PEERS, make_environment
from peers_plan import LABELS, Assignment, Contender, PeerBench, Step, Training
from peers_report import report
from peers_turns import Team, listen

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
EVAL_SAMPLES = 8


class Trial:
    """One seed: all contenders train, turn by turn."""

    def __init__(
        self,
        bench: PeerBench,
        contenders: Sequence[Contender],
        pythons: dict[str, Path],
        work: Path,
    ) -> None:
        """``pythons``: of each library's environment. ``work``: folder of the trainers."""
        self.bench, self.contenders, self.pythons, self.work = bench, contenders, pythons, work

    def run(self, seed: int, turn: int) -> list[Training]:
        """Train with ``seed``, ``turn`` steps at a time, and score the trained policies."""
        turns: dict[Contender, list[tuple[Step, ...]]] = {c: [] for c in self.contenders}
        with contextlib.ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            listener, address = listen(scratch)  # a socket's path may not be long
            stack.enter_context(listener)
            teams = []
            for contender in self.contenders:
                teams.append(self._start(contender, seed, listener, address))
                stack.callback(teams[-1].stop)
            for start in range(0, self.bench.steps, turn):
                for team in teams:
                    steps = min(turn, self.bench.steps - start)
                    turns[team.contender].append(team.take(steps))
                    show(seed, start + steps, team.contender, turns[team.contender][-1])
            for team in teams:
                team.finish()
        return [self._scored(contender, seed, turns[contender]) for contender in self.contenders]

    def _scored(
        self, contender: Contender, seed: int, turns: Sequence[tuple[Step, ...]]
    ) -> Training:
        folder = self._folder(contender, seed)
        heldout = self.score(folder / "hf", f"{folder.name}-scores")
        return Training(contender, seed, tuple(turns), heldout)

    def _folder(self, contender: Contender, seed: int) -> Path:
        return self.work / f"{contender.name}-seed{seed}"

    def _start(
        self, contender: Contender, seed: int, listener: socket.socket, address: str
    ) -> Team:
        folder = self._folder(contender, seed)
        assignment = Assignment(self.bench, contender, seed, address, str(folder))
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        command = [
            str(self.pythons[contender.library]),
            *([*launcher, str(contender.processes)] if contender.processes > 1 else []),
            str(HERE / f"peers_{contender.library}.py"),
            assignment.to_json(),
        ]
        log = self.work / f"{folder.name}.log"
        return Team(contender, command, self._environment(), log, listener)

    def _environment(self) -> dict[str, str]:
        """The same for all. A thread that waits must not spin: it would take another's time."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": str(self.bench.threads),
            "OMP_WAIT_POLICY": "PASSIVE",
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }

    def score(self, model: str | Path, name: str) -> float:
        """Mean accuracy of ``model`` on the held-out questions; details go to the folder ``name``.

        One evaluator scores all of them, so that they differ by their weights alone.
        """
        bench, scores = self.bench, self.work / name
        flags = {
            "--model": model,
            "--data": f"heldout={Path(bench.base) / 'test.jsonl'}",
            "--output": scores,
            "--n-samples": EVAL_SAMPLES,
            "--temperature": bench.temperature,
            "--top-p": 1.0,
            "--max-response-len": bench.max_response,
            "--verifier": bench.verifier,
        }
        words = [str(word) for pair in flags.items() for word in pair]
        words += ["--require-value"] if bench.require_value else []
        command = [str(self.pythons["megacurl"]), "-m", "megacurl", "eval", *words]
        run_quietly(command, self._environment())
        found = json.loads((scores / "results.json").read_text())["sets"]["heldout"]["result"]
        counts: list[int] = found["num_correct"]
        return sum(counts) / (int(found["k"]) * len(counts))


def run_quietly(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command prints; what it complains of, if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-2000:]}{done.stderr[-4000:]}\n{command[:4]} failed")
    return done.stdout


def show(seed: int, step: int, contender: Contender, steps: Sequence[Step]) -> None:
    """A line of progress."""
    seconds = sum(s.seconds for s in steps) / len(steps)
    accuracy = sum(s.accuracy for s in steps) / len(steps)
    line = f"seed {seed} step {step:3d} {contender.label:21s} {seconds:6.2f} s acc {accuracy:.3f}"
    print(line, file=sys.stderr, flush=True)


def versions(pythons: dict[str, Path]) -> str:
    """Of what matters in each environment."""
    code = (
        "import importlib.metadata as m, sys;"
        "print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    )
    names = {"megacurl": ["torch", "transformers", "megatron-core"], "trl": ["trl", "torch"]}
    names["trl"].append("transformers")
    found = {k: run_quietly([str(p), "-c", code, *names[k]]).strip() for k, p in pythons.items()}
    return "; ".join(f"{label}: {found[key]}" for key, label in LABELS.items() if key in found)


def machine() -> str:
    """Date, processor and cores."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{datetime.date.today()}, {os.cpu_count()} cores of {model}"


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, help="model and questions; default: made first")
    parser.add_argument("--output", type=Path, help="new folder; default: runs/peers-DATE-TIME")
    parser.add_argument(
        "--environment", type=Path, default=ROOT / "build" / "peers-trl", help="of TRL, made once"
    )
    parser.add_argument("--only", choices=tuple(LABELS), help="no comparison: one side alone")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--turn", type=int, default=4, help="steps at a time")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--threads", type=int, default=1, help="of every process")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--samples", type=int, default=8, help="responses to a prompt")
    parser.add_argument("--max-response", type=int, default=48)
    parser.add_argument("--verifier", default="math", help="of MegaCURL; gives both their reward")
    arguments = parser.parse_args()
    for name in ("steps", "turn", "threads", "prompts", "samples", "max_response"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if arguments.steps < 2 * arguments.turn:
        parser.error("--steps must be at least twice --turn: the first turn is not counted")
    for name in ("processes", "seeds"):
        if len(set(getattr(arguments, name))) < len(getattr(arguments, name)):
            parser.error(f"--{name} names one twice")
    for count in arguments.processes:
        if count < 1 or arguments.prompts % count:
            parser.error("--processes must be divisors of --prompts, which are dealt out evenly")
    for name in ("config.json", "train.jsonl", "test.jsonl"):
        if arguments.base is not None and not (arguments.base / name).is_file():
            parser.error(f"--base {arguments.base} has no {name}")
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    arguments.output = (arguments.output or ROOT / "runs" / f"peers-{stamp}").resolve()
    if arguments.output.exists() and any(arguments.output.iterdir()):
        parser.error(f"--output {arguments.output} holds something already; name another folder")
    return arguments


def make_base(folder: Path) -> Path:
    """The tiny base model with its questions."""
    maker = ROOT / "examples" / "models" / "make_tiny_base.py"
    run_quietly([sys.executable, str(maker), "--output", str(folder)])
    return folder


def main() -> None:
    """Train all and print the section."""
    chosen = vars(parse_arguments())
    base, output, environment = (chosen.pop(k) for k in ("base", "output", "environment"))
    only, processes, seeds, turn = (chosen.pop(k) for k in ("only", "processes", "seeds", "turn"))
    libraries = [only] if only else list(LABELS)
    pythons = {"megacurl": Path(sys.executable)}
    if "trl" in libraries:
        pythons["trl"] = make_environment(environment, PEERS / "trl.txt")
    output.mkdir(parents=True, exist_ok=True)
    bench = PeerBench(base=str((base or make_base(output / "base")).resolve()), **chosen)
    contenders = [Contender(library, count) for count in processes for library in libraries]
    trial = Trial(bench, contenders, pythons, output)
    before = trial.score(bench.base, "base-scores")
    where, what = machine(), versions(pythons)
    result = {"machine": where, "versions": what, "bench": asdict(bench), "heldout_before": before}
    trainings: list[Training] = []
    for seed in seeds:
        trainings += trial.run(seed, turn)
        rows = [training.to_json() for training in trainings]
        (output / "peers.json").write_text(json.dumps({**result, "trainings": rows}, indent=1))
        (output / "peers.md").write_text(report(bench, trainings, before, where, what))
    print((output / "peers.md").read_text())


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, EOFError) as error:
        sys.exit(f"error: {error}")
