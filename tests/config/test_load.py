# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Flags, precedence, and what an unusable command line is answered."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest

from megacurl.config.errors import ConfigError
from megacurl.config.fields import FieldSpec, describe, field_specs, flatten
from megacurl.config.help import train_help
from megacurl.config.load import parse_args, parse_train, resolve_defaults
from megacurl.config.schema import Config
from megacurl.config.yaml_file import dump_yaml, load_yaml


def _another_value(spec: FieldSpec) -> object:
    """A value of the field's type that is not its default."""
    if spec.name == "algorithm":
        return "vapo"
    if spec.type is bool:
        return not spec.default
    kind = describe(spec.type)
    if kind.startswith("one of"):
        return next(choice for choice in typing.get_args(spec.type) if choice != spec.default)
    if isinstance(spec.default, tuple):
        return tuple(float(n) for n in range(-1, len(spec.default) - 1)) or ("a.jsonl", "b=c")
    if kind.startswith("a number"):
        return 0.0625
    return 3 if kind.startswith("an integer") else "some text"


def _as_flag(spec: FieldSpec, value: object) -> list[str]:
    if spec.type is bool:
        return [spec.flag if value else spec.flag.replace("--", "--no-", 1)]
    return [spec.flag, *(map(str, value) if isinstance(value, tuple) else [str(value)])]


def test_every_field_is_a_flag() -> None:
    others = {name: _another_value(spec) for name, spec in field_specs().items()}
    assert not {name for name, value in flatten(Config()).items() if others[name] == value}
    argv = [word for name, spec in field_specs().items() for word in _as_flag(spec, others[name])]
    assert flatten(parse_args(argv)) == others


def test_every_optional_field_can_be_switched_off() -> None:
    optional = [spec for spec in field_specs().values() if describe(spec.type).endswith("or null")]
    argv = [argument for spec in optional for argument in (spec.flag, "None")]
    values = flatten(parse_args(argv))
    assert all(values[spec.name] is None for spec in optional)


def test_the_commands_own_flags() -> None:
    arguments = parse_train(["--dry-run", "--world-size", "64", "--lr", "1e-5"])
    assert (arguments.dry_run, arguments.world_size) == (True, 64)
    assert arguments.settings.optimizer.lr == 1e-5
    assert parse_train([]).settings == Config()


def test_precedence(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("algorithm: vapo\nlam_critic: 0.5\noptimizer: {lr: 2e-6}\n")
    config = parse_args(["--config", str(file), "--lr", "3e-6"])
    assert config.algorithm.algorithm == "vapo"
    assert config.algorithm.length_adaptive_alpha == 0.05  # preset over default
    assert config.algorithm.lam_critic == 0.5  # file over preset
    assert config.optimizer.lr == 3e-6  # flag over file
    assert config.algorithm.gamma == 1.0  # default


@pytest.mark.parametrize("argv", [["--algorithm", "ppo"], ["--algorithm=ppo"]])
def test_the_flag_chooses_the_preset(argv: list[str], tmp_path: Path) -> None:
    assert parse_args(argv) == resolve_defaults(algorithm="ppo")
    file = tmp_path / "run.yaml"
    file.write_text("lr: 2e-6\nlam_critic: 0.5\n")
    config = parse_args([*argv, f"--config={file}"])
    assert (config.algorithm.lam_policy, config.algorithm.lam_critic) == (0.95, 0.5)
    assert config.algorithm.value_clip == 0.2


def test_a_flag_equal_to_the_default_still_beats_preset_and_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("train_iters: 7\n")
    argv = ["--algorithm", "vapo", "--config", str(file), "--lam-critic", "0.1"]
    config = parse_args([*argv, "--train-iters", "500"])
    assert (config.algorithm.lam_critic, config.training.train_iters) == (0.1, 500)


def test_mixed_algorithms_are_refused_only_where_numbers_conflict(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("algorithm: vapo\nlr: 2e-6\n")
    assert parse_args(["--config", str(file), "--algorithm", "ppo"]).algorithm.value_clip == 0.2
    dump_yaml(resolve_defaults(algorithm="vapo"), file)
    with pytest.raises(ConfigError) as caught:
        parse_args(["--config", str(file), "--algorithm", "ppo"])
    message = str(caught.value)
    assert message.startswith(f"--algorithm ppo contradicts {file}, which is for 'vapo' and sets ")
    assert "lam_critic" in message
    assert "lam_policy" not in message
    assert parse_args(["--config", str(file), "--algorithm", "vapo"]).algorithm.lam_critic == 1.0


def test_a_written_config_repeats_the_run(tmp_path: Path) -> None:
    argv = ["--algorithm", "vapo", "--lr", "0.3", "--wd-early", "1", "-2", "-.5", "1e-3"]
    config = parse_args([*argv, "--reward-wrong", "-0.5", "--eval-prompt-data", "a", "b=c"])
    dump_yaml(config, tmp_path / "config.yaml")
    assert parse_args(["--config", str(tmp_path / "config.yaml")]) == config


def test_documented_example_is_readable(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "run.yaml").write_text(example)
    values = load_yaml(tmp_path / "run.yaml")
    assert values["algorithm"] == "vapo"
    assert values["lr"] == 1e-6


@pytest.mark.parametrize(
    ("argv", "problems"),
    [
        (["--lam-crtic", "1"], ["--lam-crtic is no flag (did you mean '--lam-critic'?)"]),
        (["--lam-crtic=1"], ["--lam-crtic is no flag (did you mean '--lam-critic'?)"]),
        (["--no-shufle"], ["--no-shufle is no flag (did you mean '--no-shuffle'?)"]),
        (["--qqqq", "1", "--dryrun"], ["--qqqq is no flag", "--dryrun is no flag (did you mean"]),
        (["--bf16", "False"], ["unexpected argument 'False'; every setting is a flag"]),
        (["train.yaml"], ["unexpected argument 'train.yaml'"]),
        (["--algorithm", "cvop"], ["--algorithm 'cvop' is no preset (did you mean 'cvpo'?)"]),
        (["--algorithm", ""], ["--algorithm '' is no preset"]),
        (["--config", "absent.yaml"], ["--config absent.yaml: cannot be read"]),
    ],
)
def test_unknown_names_are_refused(argv: list[str], problems: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_args(argv)
    assert len(caught.value.problems) == len(problems)
    for problem, start in zip(caught.value.problems, problems, strict=True):
        assert problem.startswith(start)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--lr", "fast"], ["--lr", "'fast'", "float"]),
        (["--train-iters", "1.5"], ["--train-iters", "'1.5'", "int"]),
        (["--kl-estimator", "k4"], ["--kl-estimator", "'k4'", "'k1', 'k2', 'k3'"]),
        (["--wd-early", "1", "2"], ["--wd-early", "Expected 4 values"]),
        (["--value-clip", "off"], ["--value-clip", "'off'", "None"]),
        (["--config"], ["--config", "Expected 1 values"]),
    ],
)
def test_wrong_values_exit_with_2_and_name_flag_value_and_allowed(
    argv: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_args(argv)
    assert caught.value.code == 2
    printed = " ".join(capsys.readouterr().err.replace("│", " ").split())
    for word in words:
        assert word in printed


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_shows_the_preset_and_the_file(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text("train_iters: 7\n")
    with pytest.raises(SystemExit) as caught:
        parse_args(["--algorithm", "vapo", "--config", str(tmp_path / "run.yaml"), flag])
    assert caught.value.code == 0
    config = resolve_defaults("vapo", str(tmp_path / "run.yaml"))
    assert capsys.readouterr().out == train_help(config) + "\n"


def test_later_ranks_print_nothing_and_leave_with_the_same_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "3")
    for argv, code in ((["--lr", "x"], 2), (["--config"], 2), (["--help"], 0)):
        with pytest.raises(SystemExit) as caught:
            parse_args(argv)
        assert caught.value.code == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
