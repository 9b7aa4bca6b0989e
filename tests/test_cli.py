# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The command line from outside: help, dry run, refusals, exit codes, ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from megacurl import __version__
from megacurl.cli import main

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "examples" / "models" / "qwen2.5-7b"


def _run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    return subprocess.run(
        [sys.executable, "-m", "megacurl", *argv],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _train_argv(tmp_path: Path) -> list[str]:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text((MODEL / "config.json").read_text())
    (model / "model.safetensors").touch()
    (tmp_path / "q.jsonl").touch()
    argv = ["train", "--hf-checkpoint", str(model), "--prompt-data", str(tmp_path / "q.jsonl")]
    return [*argv, "--run-dir", str(tmp_path / "run")]


def test_dry_run_of_64_ranks_prints_the_layout() -> None:
    done = _run(
        *("train", "--dry-run", "--hf-checkpoint", str(MODEL), "--world-size", "64", "--bf16"),
        *("--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Layout: 64 ranks = tensor 4 x data 8 x pipeline 2" in done.stdout
    assert "7,615,616,512 parameters" in done.stdout


def test_help_of_an_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help-algorithm", "gspo"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("gspo: ")
    assert "--eps-clip-high 0.0004" in printed
    assert main(["train", "--help-algorithm", "gpso"]) == 2
    assert "did you mean 'gspo'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "flags", "ranks"),
    [
        ({}, [], 2),
        ({"WORLD_SIZE": "8"}, [], 8),
        ({"WORLD_SIZE": "8"}, ["--world-size", "16"], 16),
    ],
)
def test_world_size_of_a_dry_run(
    environment: dict[str, str],
    flags: list[str],
    ranks: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    argv = ["train", "--dry-run", "--hf-checkpoint", str(MODEL), *flags]
    assert main([*argv, "--tensor-model-parallel-size", "2"]) == 0
    assert capsys.readouterr().out.startswith(f"Layout: {ranks} ranks = tensor 2 x ")


def test_nothing_that_only_parses_imports_torch() -> None:
    commands = [
        ["--help"],
        ["train", "--help"],
        ["train"],
        ["train", "--dry-run", "--hf-checkpoint", str(MODEL)],
        ["export", "--help"],
        ["eval", "--help"],
        ["eval", "--model", "absent", "--data", "absent.jsonl", "--output", "absent"],
        ["data", "inspect", "--help"],
        ["plan", "--help"],
        ["plan", "--hf-checkpoint", str(MODEL), "--tensor-model-parallel-size", "3"],
    ]
    script = f"""
import sys
from megacurl.cli import main
for command in {commands!r}:
    try:
        main(command)
    except SystemExit:
        pass
heavy = {{"torch", "transformers", "megatron", "numpy", "pyarrow"}} & set(sys.modules)
sys.exit(f"imported {{sorted(heavy)}}" if heavy else 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_top_help_teaches(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 22 and max(map(len, lines)) <= 100
    for command in ("train", "eval", "data inspect", "plan", "export"):
        (index,) = (i for i, line in enumerate(lines) if line.startswith(f"  {command} "))
        assert lines[index + 1].strip().startswith(f"megacurl {command} "), "its example"


def test_examples_of_the_help_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    """They fail for want of files, not of flags."""
    main([])
    examples = re.findall(r"^ +megacurl (.*)", capsys.readouterr().out, re.MULTILINE)
    assert len(examples) == 5
    for example in examples:
        assert main(example.split()) == 2
        errors = capsys.readouterr().err
        assert "is no flag" not in errors and "is no command" not in errors
        missing = ("is no f", "no such", "cannot be read", "no complete checkpoint")
        assert any(reason in errors for reason in missing)


def test_plan_of_64_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", "--hf-checkpoint", str(MODEL), "--bf16", "--world-size", "64"]
    argv += ["--tensor-model-parallel-size", "4", "--pipeline-model-parallel-size", "2"]
    argv += ["--rollout-tensor-parallel-size", "2", "--rollout-engines", "6"]
    assert main(argv) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Weights: 7,615,616,512 parameters, 14.19 GiB\n")
    assert "from 64 trainer ranks = tensor 4 x data 8 x pipeline 2\n" in printed
    assert "to 12 engine ranks = 6 engines x tensor 2\n" in printed
    # 6 x 14.19 GiB over 64 ranks; half the model is what a rank of an engine holds.
    assert "busiest rank 1.33 GiB, lower bound 1.33 GiB, ratio 1.000" in printed
    assert re.search(r"\[0 1\] +7.09 GiB +7.09 GiB +1.000", printed)


@pytest.mark.parametrize(
    ("flags", "messages"),
    [
        (["--world-size", "0", "--rollout-engines", "-1"], ["--world-size 0", "engines -1 must"]),
        (["--world-size", "6", "--tensor-model-parallel-size", "4"], ["6 is no multiple of"]),
        (["--tensor-model-parallel-size", "8"], ["28 attention heads", "use one of 1, 2, 4"]),
        (["--rollout-tensor-parallel-size", "8"], ["28 attention heads", "use one of 1, 2, 4"]),
        (["--rollout-engine", "vllm"], ["--rollout-engine is no flag", "'--rollout-engines'"]),
    ],
)
def test_plan_refuses(
    flags: list[str], messages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--hf-checkpoint", str(MODEL), *flags]) == 2
    errors = capsys.readouterr().err
    assert all(message in errors for message in messages)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"megacurl {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["trian"], "megacurl: 'trian' is no command (did you mean 'train'?); choose one of"),
        (["data", "inspct"], "megacurl: 'inspct' is no action of megacurl data (did you mean"),
        (["train", "--lam-crtic", "1"], "megacurl: --lam-crtic is no flag (did you mean '--lam-cr"),
        (["export", "--laod", "a", "--load", "b", "--output", "c"], "megacurl: --laod is no flag"),
        (["data", "inspect", "absent.jsonl"], "megacurl: absent.jsonl"),
        (["train", "--world-size", "4"], "megacurl: --world-size 4 only goes with --dry-run"),
        (["train"], "megacurl: --hf-checkpoint is missing"),
    ],
)
def test_refusals(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(message)
    assert captured.out == ""


def test_export_without_its_flags_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["export", "--load", "run"])
    assert caught.value.code == 2
    assert "--output" in capsys.readouterr().err


def test_a_bad_world_size_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "many")
    assert main(_train_argv(tmp_path)) == 2
    assert "WORLD_SIZE is 'many', must be a positive integer" in capsys.readouterr().err


def test_ranks_leave_with_one_code_and_one_voice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (["trian"], ["train", "--lam-crtic", "1"], ["train"]):
        for rank, speaks in (("0", True), ("1", False)):
            monkeypatch.setenv("RANK", rank)
            monkeypatch.setenv("LOCAL_RANK", rank)
            assert main(argv) == 2
            assert bool(capsys.readouterr().err) is speaks


def _torchrun(*argv: str) -> subprocess.CompletedProcess[str]:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return subprocess.run(
        [*torchrun, "--nproc-per-node", "2", "-m", "megacurl", *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_torchrun_prints_a_refusal_once() -> None:
    done = _torchrun("train", "--lam-crtic", "1")
    assert done.returncode != 0
    assert done.stderr.count("megacurl: --lam-crtic is no flag (did you mean '--lam-critic'?)") == 1


def test_torchrun_prints_help_once() -> None:
    done = _torchrun("train", "--help")
    assert done.returncode == 0
    assert done.stdout.count("usage: megacurl train") == done.stdout.count("  --lr X ") == 1


def test_a_file_that_another_machine_lacks_is_named_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "8")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert main(["train", "--hf-checkpoint", "absent"]) == 2
    assert "--hf-checkpoint absent is no folder on this machine" in capsys.readouterr().err


def test_train_hands_the_checked_config_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[object] = []
    module = types.ModuleType("megacurl.train")
    module.main = received.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "megacurl.train", module)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert main([*_train_argv(tmp_path), "--algorithm", "vapo"]) == 0
    (config,) = received
    assert config.algorithm.lam_critic == 1.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("bug", [RuntimeError("bug"), FloatingPointError("bug"), KeyError("bug")])
def test_a_bug_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: Exception
) -> None:
    def fail(config: object) -> None:
        raise bug

    module = types.ModuleType("megacurl.train")
    module.main = fail  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "megacurl.train", module)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(type(bug), match="bug"):
        main(_train_argv(tmp_path))


def test_an_impossible_layout_never_reaches_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "6")
    monkeypatch.setitem(sys.modules, "megacurl.train", types.ModuleType("megacurl.train"))
    assert main([*_train_argv(tmp_path), "--tensor-model-parallel-size", "4"]) == 2
    assert "world size 6 is no multiple of" in capsys.readouterr().err


def test_export_hands_its_arguments_over(monkeypatch: pytest.MonkeyPatch) -> None:
    received: dict[str, str] = {}
    module = types.ModuleType("megacurl.export")
    module.main = lambda **arguments: received.update(arguments)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "megacurl.export", module)
    assert main(["export", "--load", "runs/a", "--output", "a-hf"]) == 0
    assert received == {"load": "runs/a", "output": "a-hf"}


def test_eval_hands_arguments_and_questions_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[object] = []
    module = types.ModuleType("megacurl.eval_command")
    module.main = lambda *arguments: received.extend(arguments)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "megacurl.eval_command", module)
    (tmp_path / "q.jsonl").write_text('{"problem": "1+1?", "answer": "2"}\n')
    data = [f"a={tmp_path / 'q.jsonl'}", str(tmp_path / "q.jsonl")]
    argv = ["eval", "--model", str(MODEL), "--data", *data, "--output", str(tmp_path / "out")]
    assert main([*argv, "--n-samples", "4"]) == 0
    arguments, sets = received
    assert (arguments.n_samples, arguments.data) == (4, tuple(data))  # type: ignore[attr-defined]
    assert [one.spec.name for one in sets] == ["a", "q"]  # type: ignore[attr-defined]


def test_data_inspect_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"problem": "1+1?", "answer": "2"}\n' * 2)
    assert main(["data", "inspect", str(file)]) == 0
    cells = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["rows", "2"] in cells
    assert ["distinct", "by", "text", "1"] in cells


def test_data_inspect_counts_overlap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"problem": "1+1?", "answer": "2"}\n{"problem": "1+2?", "answer": "3"}\n')
    assert main(["data", "inspect", str(file), "--decontaminate", f"quiz={file}@[:1]"]) == 0
    assert capsys.readouterr().out.endswith(
        "--decontaminate would leave out 1 of 2 questions\n  quiz  1, which ask 1 of its 1\n"
    )
    assert main(["data", "inspect", str(file), "--decontaminate", "absent.jsonl"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(
        "megacurl: --decontaminate absent.jsonl: absent.jsonl is no file"
    )
    assert captured.out == ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "megacurl", "train", "--help"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
