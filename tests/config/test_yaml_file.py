# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Settings in YAML: what is accepted, what is refused, and the round trip."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import yaml

from megacurl.config.errors import ConfigError
from megacurl.config.fields import field_specs, flatten, section_types, unflatten
from megacurl.config.schema import Config
from megacurl.config.yaml_file import dump_yaml, load_yaml


def _load(tmp_path: Path, text: str) -> dict[str, object]:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    return load_yaml(file)


def _problems(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    return [problem.replace(f"{tmp_path}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize("sectioned", [False, True])
def test_every_field_is_a_yaml_key(tmp_path: Path, sectioned: bool) -> None:
    for spec in field_specs().values():
        default = list(spec.default) if isinstance(spec.default, tuple) else spec.default
        document = {spec.name: default}
        text = yaml.safe_dump({spec.section: document} if sectioned else document)
        assert _load(tmp_path, text) == {spec.name: spec.default}


def test_flat_and_sectioned_keys_mix(tmp_path: Path) -> None:
    text = "algorithm: vapo\noptimizer:\n  lr: 1e-6\ntraining: {train_iters: 3}\nseed: 7\n"
    assert _load(tmp_path, text) == {
        "algorithm": "vapo",
        "lr": 1e-6,
        "train_iters": 3,
        "seed": 7,
    }


def test_the_section_and_the_field_called_algorithm(tmp_path: Path) -> None:
    text = "algorithm:\n  algorithm: ppo\n  gamma: 0.5\n"
    assert _load(tmp_path, text) == {"algorithm": "ppo", "gamma": 0.5}


def test_scalars_follow_yaml_1_2(tmp_path: Path) -> None:
    text = (
        "whiten_advantages: off\ntrend_empty: false\nlr: 1e-6\ntrain_iters: 010\n"
        "run_dir: 2026-01-01\nvalue_clip: ~\nload:\n"
    )
    assert _load(tmp_path, text) == {
        "whiten_advantages": "off",
        "trend_empty": "false",
        "lr": 1e-6,
        "train_iters": 10,
        "run_dir": "2026-01-01",
        "value_clip": None,
        "load": None,
    }


def test_empty_file_and_empty_section_set_nothing(tmp_path: Path) -> None:
    assert _load(tmp_path, "") == {}
    assert _load(tmp_path, "optimizer:\nalgorithm:\n") == {}


def test_all_problems_of_a_file_are_reported_at_once(tmp_path: Path) -> None:
    text = """\
lam_crtic: 1
modell: {}
model: {lr: 3, bf17: true}
bf16: yes
parallel: 3
lr: '3'
optimizer: {critic_lr: x}
critic_lr: 1
"""
    assert _problems(tmp_path, text) == [
        "run.yaml: lam_crtic is no setting (did you mean 'lam_critic'?)",
        "run.yaml: modell is no setting (did you mean 'model'?)",
        "run.yaml: model.lr belongs under 'optimizer'; move it there or to the top level",
        "run.yaml: model.bf17 is no setting (did you mean 'bf16'?)",
        "run.yaml: bf16 is 'yes', must be true or false",
        "run.yaml: section 'parallel' is 3, must be a mapping of settings",
        "run.yaml: lr is '3', must be a number",
        "run.yaml: optimizer.critic_lr is 'x', must be a number",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr: 1\nlr: 2\n", "key 'lr' occurs twice"),
        ("optimizer: {lr: 1}\nlr: 2\n", "lr is set twice, at the top level and under its section"),
        ("- lr\n", "holds a list, must be a mapping"),
        ("lr: [1\n", "not valid YAML"),
        ("? [lr]\n: 1\n", "not valid YAML"),
        ("lr: !!python/name:os.system\n", "not valid YAML"),
        ("3: 4\n", "3 is no setting"),
        ("<<: {lr: 1}\n", "<< is no setting"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (problem,) = _problems(tmp_path, text)
    assert message in problem
    assert "run.yaml" in problem


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--config .*absent\.yaml: cannot be read: No such file"):
        load_yaml(tmp_path / "absent.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_yaml(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_yaml(tmp_path / "binary.yaml")


def test_round_trip_of_every_value_changed(tmp_path: Path) -> None:
    changed = flatten(Config())
    for index, (name, value) in enumerate(changed.items()):
        if isinstance(value, bool):
            changed[name] = not value
        elif isinstance(value, int | float):
            changed[name] = type(value)(value + index)
    changed |= {
        "lr": 0.1 + 0.2,
        "adam_eps": 1e-300,
        "ws_ddof": 1,
        "value_clip": 1 / 3,
        "eval_prompt_data": ("a.jsonl", "b=c d.jsonl"),
        "wd_early": (-1e-9, math.pi, 0.0, 1e9),
        "load": None,
    }
    config = unflatten(changed)
    dump_yaml(config, tmp_path / "run" / "config.yaml")
    assert unflatten(load_yaml(tmp_path / "run" / "config.yaml")) == config


@pytest.mark.parametrize(
    "text",
    ["off", "false", "null", "~", "", "1e-6", "010", "1_000", "1:30", "2026-01-01", "0x10", "=",
     "- a", "{problem}\n\tü ", "q.jsonl@[0:5]", "# x", "'", "yes: no"],
)  # fmt: skip
def test_round_trip_of_texts_that_look_like_something_else(tmp_path: Path, text: str) -> None:
    config = unflatten({"instruction": text, "run_dir": text, "eval_prompt_data": (text,)})
    dump_yaml(config, tmp_path / "config.yaml")
    assert unflatten(load_yaml(tmp_path / "config.yaml")) == config


def test_dump_is_sectioned_complete_and_readable_as_yaml_1_1(tmp_path: Path) -> None:
    dump_yaml(Config(), tmp_path / "config.yaml")
    document = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert list(document) == list(section_types())
    assert [name for section in document.values() for name in section] == list(field_specs())
    assert document["algorithm"]["whiten_advantages"] == "off"
    assert document["optimizer"]["lr"] == 1e-6


def test_dump_replaces_the_file_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("x" * 100_000)
    dump_yaml(Config(), file)
    assert unflatten(load_yaml(file)) == Config()
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
