# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The benchmark against TRL: same settings, turns that are kept, and the numbers it prints.

TRL is not installed here; MegaCURL's half runs as it does in the benchmark.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from peer_environment import PEERS, make_environment
from peers_megacurl import config_of
from peers_plan import Assignment, Contender, PeerBench, Step, Training
from peers_report import Noise, curve_table, ratios, report, speed_table, verdicts, windows
from peers_turns import Team, listen

ROOT = Path(__file__).parents[2]
OURS, THEIRS = Contender("megacurl", 1), Contender("trl", 1)


def test_our_settings_are_the_preset_and_the_example_and_what_trl_is_given() -> None:
    bench = PeerBench(base="/base")
    config = config_of(bench, 7, "/run")
    algorithm, optimizer = config.algorithm, config.optimizer
    # What peers_trl.py writes out: loss_type grpo, scale_rewards group, beta 0, one iteration.
    assert algorithm.advantage_estimator == "grpo"
    assert (algorithm.loss_agg_mode, algorithm.grpo_std) == ("seq-mean-token-mean", "sample")
    assert algorithm.eps_clip == algorithm.eps_clip_high == bench.eps_clip
    assert algorithm.kl_coef == algorithm.entropy_coef == algorithm.positive_lm_coef == 0
    assert config.training.ppo_epochs == config.training.updates_per_rollout == 1
    assert (algorithm.reward_correct, algorithm.reward_wrong) == (1.0, -1.0)
    assert (algorithm.reward_truncated, algorithm.overlong_penalty) == (None, 0.0)
    assert not config.cvpo.use_w_d and config.sampling.sampling == "uniform"
    assert (optimizer.lr, optimizer.lr_decay_style) == (bench.lr, "constant")
    assert optimizer.lr_warmup_iters == 0
    assert (optimizer.adam_beta1, optimizer.adam_beta2) == (bench.adam_beta1, bench.adam_beta2)
    assert (optimizer.adam_eps, optimizer.clip_grad) == (bench.adam_eps, bench.clip_grad)
    assert optimizer.weight_decay == bench.weight_decay
    assert config.rollout.rollout_temperature == bench.temperature == 1.0
    assert config.training.seed == 7
    script = (ROOT / "examples" / "run_cvpo_tiny.sh").read_text()
    for flag, value in (
        ("rollout-batch-size", bench.prompts),
        ("n-samples-per-prompt", bench.samples),
        ("rollout-max-prompt-len", bench.max_prompt),
        ("rollout-max-response-len", bench.max_response),
        ("max-tokens-per-micro-batch", config.training.max_tokens_per_micro_batch),
        ("weight-decay", f"{bench.weight_decay:g}"),
        ("lr", "1e-4"),
    ):
        assert re.search(rf"--{flag} {value}\n", script), flag
    assert bench.lr == 1e-4
    assert "--require-value" in script and config.data.require_value


def test_an_assignment_survives_the_command_line() -> None:
    bench = PeerBench(base="/a b", steps=3)
    assignment = Assignment(bench, Contender("trl", 2), 5, "/tmp/turns", "/out")
    assert Assignment.of_json(assignment.to_json()) == assignment


# Two processes as torchrun would start them; a step of the second takes 3 s more on its clock.
WORKER = """
import os, sys
from peers_turns import Player
ticks = iter(range(1000))
def play(rank):
    step = 0
    clock = lambda: next(ticks) * (1 + 3 * rank)
    player = Player(sys.argv[1], sys.argv[2], clock)
    for step in range(int(sys.argv[3])):
        player.begin()
        player.end(accuracy=step / 10, length=step)
    player.close()
child = os.fork()
play(0 if child else 1)
if child:
    print("the last line")
    os.waitpid(child, 0)
    sys.exit(int(sys.argv[4]))
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Team]]:
    """Starts a team of the workers above."""
    with tempfile.TemporaryDirectory() as scratch:
        listener, address = listen(Path(scratch))

        def begin(name: str = "trl-2", steps: int = 5, code: int = 0, worker: str = WORKER) -> Team:
            command = [sys.executable, "-c", worker, address, name, str(steps), str(code)]
            environment = {"PYTHONPATH": str(ROOT / "benchmarks")}
            return Team(
                Contender("trl", 2), command, environment, tmp_path / "worker.log", listener
            )

        yield begin
        listener.close()


def test_a_team_takes_the_steps_it_is_told_to(start: Callable[..., Team]) -> None:
    team = start()
    first, second = team.take(2), team.take(3)
    assert first == (Step(4.0, 0.0, 0), Step(4.0, 0.1, 1))  # the slower process's seconds
    assert [step.accuracy for step in second] == [0.2, 0.3, 0.4]
    team.finish()


def test_a_team_that_fails_says_what_it_printed(start: Callable[..., Team]) -> None:
    with pytest.raises(RuntimeError, match="no such model\nTRL, 2 processes: ended with code 3"):
        start(worker="import sys; print('no such model'); sys.exit(3)")
    team = start(steps=1, code=4)
    team.take(1)
    with pytest.raises(RuntimeError, match="the last line\nTRL, 2 processes: ended with code 4"):
        team.finish()
    team = start(steps=1, code=4)
    with pytest.raises((RuntimeError, EOFError)):  # it has left before its turn is over
        team.take(2)
    team.stop()


def test_a_team_of_another_name_is_sent_away(start: Callable[..., Team]) -> None:
    with pytest.raises(RuntimeError, match="megacurl-1 came where trl-2 was waited for"):
        start(name="megacurl-1")


def test_stopping_ends_the_processes(start: Callable[..., Team]) -> None:
    team = start()
    team.take(1)
    team.stop()
    with pytest.raises(OSError):
        team.take(1)


def test_the_environment_is_made_once_and_anew_for_other_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements, folder = tmp_path / "requirements.txt", tmp_path / "env"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("MEGACURL_TORCH_INDEX", raising=False)
    requirements.write_text("# nothing\n")
    python = make_environment(folder, requirements)
    assert subprocess.run([python, "-c", "import pip"]).returncode == 0
    (folder / "mark").touch()
    assert make_environment(folder, requirements) == python
    assert (folder / "mark").exists()
    requirements.write_text("a-package-that-no-folder-holds==1.0\n")
    with pytest.raises(RuntimeError, match=r"a-package-that-no-folder-holds.*\nfailed: "):
        make_environment(folder, requirements)
    assert not (folder / "mark").exists()


def test_an_environment_in_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RuntimeError, match="holds something else; name another folder"):
        make_environment(tmp_path, PEERS / "trl.txt")
    assert (tmp_path / "thesis.tex").exists()


def test_every_requirement_is_pinned_and_the_shared_ones_are_ours() -> None:
    def pins(file: Path) -> dict[str, str]:
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        return dict(line.split("==") for line in lines)  # a line without a pin is an error here

    theirs, ours = pins(PEERS / "trl.txt"), pins(ROOT / "constraints.txt")
    assert theirs["trl"].startswith("1.16.")
    for name in ("torch", "transformers", "tokenizers", "math-verify"):
        assert theirs[name] == ours[name], name


def training(
    contender: Contender, seed: int, seconds: list[float], accuracy: float, heldout: float
) -> Training:
    """Turns of two steps: the first slow, then one of each of ``seconds``."""
    turns = tuple((Step(s, accuracy, 20), Step(s, accuracy, 20)) for s in [99.0, *seconds])
    return Training(contender, seed, turns, heldout)


BENCH = PeerBench(base="/base", steps=6)
TRAININGS = [
    training(OURS, 1, [1.0, 0.5], 0.60, 0.80),
    training(THEIRS, 1, [2.0, 1.0], 0.62, 0.90),
    training(OURS, 2, [1.0, 1.0], 0.64, 0.81),
    training(THEIRS, 2, [1.0, 2.0], 0.60, 0.92),
]


def test_ratios_are_taken_round_by_round_without_the_first() -> None:
    assert ratios(TRAININGS, OURS) == [1.0, 2.0, 2.0, 2.0]
    rows = speed_table(BENCH, TRAININGS)
    assert rows[2] == (
        "| MegaCURL, 1 process | 1.00 (0.50 to 1.00) | 128 | 2.00x (1.00 to 2.00) | 1.5x: met | "
        "20.0 |"
    )
    assert "1.00x (1.00 to 1.00) |  |" in rows[3]
    slow = [training(OURS, 1, [1.0], 0.6, 0.8), training(THEIRS, 1, [1.4], 0.6, 0.8)]
    assert "1.40x (1.40 to 1.40) | 1.5x: missed" in speed_table(BENCH, slow)[2]


def test_curves_are_compared_by_what_seeds_differ() -> None:
    noise = Noise.of([0.60, 0.64], [0.62, 0.60])
    # Variances 0.0008 and 0.0002 over 2 seeds: sqrt(0.0005) x 4.303 (t, 2 degrees of freedom).
    assert noise.half == pytest.approx(0.0962, abs=1e-4)
    assert noise.difference == pytest.approx(0.01)
    first, second = verdicts(BENCH, TRAININGS)
    assert first.endswith("+0.010 ± 0.096: within noise")
    assert second.endswith("-0.105 ± 0.048: outside of noise")
    assert "one seed shows no noise" in verdicts(BENCH, TRAININGS[:2])[0]
    assert verdicts(BENCH, TRAININGS[:1]) == []


def test_report() -> None:
    assert [list(part) for part in windows(BENCH)] == [[0], [1], [2], [3], [4, 5]]
    rows = curve_table(BENCH, TRAININGS, before=0.5)
    assert "steps 5-6 | all steps | held out (before: 0.500)" in rows[0]
    assert rows[2].endswith("| 0.620 ± 0.028 | 0.620 ± 0.028 | 0.805 ± 0.007 |")
    text = report(BENCH, TRAININGS, 0.5, "a machine", "versions")
    assert "16 prompts x 8 samples, 6 steps, 2 seed(s)" in text
    again = [Training.of_json(json.loads(json.dumps(t.to_json()))) for t in TRAININGS]
    assert report(BENCH, again, 0.5, "a machine", "versions") == text


def test_our_half_from_the_command_line(tiny_model: Callable[[str], Path], tmp_path: Path) -> None:
    base, output = tmp_path / "base", tmp_path / "output"
    shutil.copytree(tiny_model("qwen2-tied"), base)
    rows = [{"id": f"q{i}", "prompt": f"{i} + {i}?", "answer": str(2 * i)} for i in range(9)]
    for name, part in (("train", rows[:6]), ("test", rows[6:])):
        text = "".join(json.dumps(row) + "\n" for row in part)
        (base / f"{name}.jsonl").write_text(text)
    command = [sys.executable, str(ROOT / "benchmarks" / "peers.py"), "--only", "megacurl"]
    flags = {"--base": base, "--output": output, "--seeds": 3, "--steps": 3, "--turn": 1}
    flags |= {"--processes": 2, "--prompts": 2, "--samples": 2, "--max-response": 6}
    words = [str(word) for pair in {**flags, "--verifier": "coin_flip"}.items() for word in pair]
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^\| MegaCURL, 2 processes \| [\d.]+ \([\d.]+ to [\d.]+\) \| \d+ \|", done.stdout, re.M
    )
    assert (output / "peers.md").read_text() in done.stdout
    result = json.loads((output / "peers.json").read_text())
    (found,) = [Training.of_json(row) for row in result["trainings"]]
    assert (found.contender, found.seed) == (Contender("megacurl", 2), 3)
    assert [len(turn) for turn in found.turns] == [1, 1, 1]
    assert all(step.seconds > 0 and 0 < step.length <= 6 for step in found.steps)
    assert {step.accuracy for step in found.steps} <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert 0 <= found.heldout <= 1 and 0 <= result["heldout_before"] <= 1
    assert (output / "megacurl-2-seed3" / "hf" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--steps 3 --turn 2", "the first turn is not counted"),
        ("--processes 3", "must be divisors of --prompts"),
        ("--seeds 1 2 1", "--seeds names one twice"),
        ("--samples 0", "--samples must be at least 1"),
        ("--base .", "has no config.json"),
        ("--output .", "holds something already"),
    ],
)
def test_refusals(flags: str, message: str) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "peers.py"), *flags.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert message in done.stderr
