# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The flat view of the schema and the check of a value against a field's type."""

from __future__ import annotations

from dataclasses import fields

import pytest

from megacurl.config.bounds import BOUNDS
from megacurl.config.errors import ConfigError
from megacurl.config.fields import (
    convert,
    describe,
    field_specs,
    flatten,
    help_texts,
    section_types,
    unflatten,
)
from megacurl.config.load import TrainArguments
from megacurl.config.schema import Config


def test_no_two_fields_share_a_name() -> None:
    names = [entry.name for kind in section_types().values() for entry in fields(kind)]
    names += [entry.name for entry in fields(TrainArguments) if entry.name != "settings"]
    assert len(names) == len(set(names))
    assert len(field_specs()) == len(names) - 4


def test_no_field_is_another_fields_negation() -> None:
    names = set(field_specs())
    assert not {name for name in names if f"no_{name}" in names}


def test_flatten_and_unflatten_are_inverse() -> None:
    assert unflatten(flatten(Config())) == Config()
    changed = {**flatten(Config()), "lr": 3.0, "wd_early": (1.0, 2.0, 3.0, 4.0)}
    assert flatten(unflatten(changed)) == changed


def test_every_field_and_section_has_help() -> None:
    texts = help_texts()
    for name in (*field_specs(), *(f"section:{section}" for section in section_types())):
        assert texts[name].endswith("."), name
    assert texts["lr"] == "Peak learning rate of the actor."


def test_every_default_has_its_declared_type() -> None:
    for spec in field_specs().values():
        assert convert(spec, spec.default, spec.name) == spec.default


def test_every_number_has_a_range_that_its_default_meets() -> None:
    numeric = {
        name
        for name, spec in field_specs().items()
        if any(word in describe(spec.type) for word in ("number", "integer"))
    }
    assert numeric == set(BOUNDS)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("lr", 1, 1.0),
        ("value_clip", None, None),
        ("value_clip", 1, 1.0),
        ("bf16", True, True),
        ("ws_ddof", 1, 1),
        ("trend_empty", False, "false"),
        ("trend_empty", "true", "true"),
        ("wd_early", [1, 2.5, 3, 4], (1.0, 2.5, 3.0, 4.0)),
        ("eval_prompt_data", [], ()),
        ("eval_prompt_data", ["a", "b"], ("a", "b")),
    ],
)
def test_convert_accepts(name: str, value: object, expected: object) -> None:
    converted = convert(field_specs()[name], value, name)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("lr", "1e-6", "a number"),
        ("lr", True, "a number"),
        ("lr", None, "a number"),
        ("train_iters", 3.0, "an integer"),
        ("train_iters", True, "an integer"),
        ("bf16", 1, "true or false"),
        ("run_dir", 3, "a text"),
        ("value_clip", "off", "a number or null"),
        ("ws_ddof", True, "one of 0, 1"),
        ("ws_ddof", 1.0, "one of 0, 1"),
        ("kl_estimator", "k4", "one of k1, k2, k3"),
        ("wd_early", [1, 2, 3], "4 numbers"),
        ("wd_early", 1.0, "4 numbers"),
        ("eval_prompt_data", "a.jsonl", "a list of texts"),
    ],
)
def test_convert_refuses_and_names_field_value_and_allowed(
    name: str, value: object, allowed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        convert(field_specs()[name], value, f"run.yaml: {name}")
    assert str(caught.value) == f"run.yaml: {name} is {value!r}, must be {allowed}"
