# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The schema seen as one flat list of typed fields, and the check of a value against its type."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from types import MappingProxyType, NoneType, UnionType

from megacurl.config import schema
from megacurl.config.errors import ConfigError
from megacurl.config.schema import Config


@dataclass(frozen=True)
class FieldSpec:
    """One setting: where it lives, its resolved type annotation, and the schema's default."""

    name: str
    section: str
    type: typing.Any
    default: object

    @property
    def flag(self) -> str:
        """The command line name, ``--tensor-model-parallel-size``."""
        return flag_name(self.name)


def flag_name(field_name: str) -> str:
    """Return the flag of a field: ``lam_critic`` is ``--lam-critic``."""
    return "--" + field_name.replace("_", "-")


@cache
def section_types() -> Mapping[str, type]:
    """Return section name -> dataclass, in the schema's order."""
    hints = typing.get_type_hints(Config)
    return MappingProxyType({entry.name: hints[entry.name] for entry in fields(Config)})


@cache
def field_specs() -> Mapping[str, FieldSpec]:
    """Return field name -> spec for every field of every section, in the schema's order."""
    specs: dict[str, FieldSpec] = {}
    for section, section_type in section_types().items():
        hints = typing.get_type_hints(section_type)
        for entry in fields(section_type):
            if entry.name in specs:
                raise TypeError(
                    f"field {entry.name!r} occurs in sections {specs[entry.name].section!r} and "
                    f"{section!r} of the schema; flags are flat, so rename one of them"
                )
            specs[entry.name] = FieldSpec(entry.name, section, hints[entry.name], entry.default)
    return MappingProxyType(specs)


def flatten(config: Config) -> dict[str, object]:
    """Return field name -> value of every setting, in the schema's order."""
    return {
        spec.name: getattr(getattr(config, spec.section), spec.name)
        for spec in field_specs().values()
    }


def unflatten(values: Mapping[str, object]) -> Config:
    """Build a Config from field name -> value; a field left out takes the schema's default."""
    specs = field_specs()
    sections: dict[str, dict[str, object]] = {section: {} for section in section_types()}
    for name, value in values.items():
        sections[specs[name].section][name] = value
    built = {section: kind(**sections[section]) for section, kind in section_types().items()}
    return Config(**built)


def convert(spec: FieldSpec, value: object, where: str) -> object:
    """Return ``value`` as the field's type holds it (a YAML list becomes a tuple, 1 becomes 1.0).

    ``where`` is named in the message (``"run.yaml: lr"``). Raises ConfigError on another type, a
    value that is not one of the allowed ones, or a list of the wrong length. Nothing is guessed:
    a string is never read as a number.
    """
    try:
        return _convert(spec.type, value)
    except (TypeError, ValueError):
        raise ConfigError(f"{where} is {value!r}, must be {describe(spec.type)}") from None


def _convert(kind: typing.Any, value: object) -> object:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _convert(inner, value)
    if origin is typing.Literal:
        return _convert_choice(arguments, value)
    if origin is tuple:
        return _convert_tuple(arguments, value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError
    return value


def _convert_choice(choices: tuple[object, ...], value: object) -> object:
    # An unquoted YAML true or false is meant where the choices are those two words.
    if isinstance(value, bool):
        value = str(value).lower()
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    raise ValueError


def _convert_tuple(kinds: tuple[typing.Any, ...], value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    if kinds[-1] is Ellipsis:
        return tuple(_convert(kinds[0], item) for item in value)
    if len(kinds) != len(value):
        raise ValueError
    return tuple(_convert(kind, item) for kind, item in zip(kinds, value, strict=True))


def describe(kind: typing.Any) -> str:
    """Say in words what a field of this type accepts: ``"a number or null"``."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType):
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return f"{describe(inner)} or null"
    if origin is typing.Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        what = {float: "numbers", str: "texts"}[arguments[0]]
        return f"a list of {what}" if arguments[-1] is Ellipsis else f"{len(arguments)} {what}"
    return {bool: "true or false", int: "an integer", float: "a number", str: "a text"}[kind]


@cache
def help_texts() -> Mapping[str, str]:
    """Return field name -> the docstring under it, and section name -> the section's docstring.

    Sections are keyed ``"section:model"``, since a section and a field may share a name.
    """
    tree = ast.parse(inspect.getsource(schema))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    texts: dict[str, str] = {}
    for section, section_type in section_types().items():
        body = classes[section_type.__name__].body
        texts[f"section:{section}"] = inspect.cleandoc(section_type.__doc__ or "")
        for statement, after in pairwise(body):
            if not isinstance(statement, ast.AnnAssign):
                continue
            if (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(statement.target, ast.Name)
            ):
                texts[statement.target.id] = inspect.cleandoc(str(after.value.value))
    return MappingProxyType(texts)
