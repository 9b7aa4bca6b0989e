# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Settings in YAML: flat keys, keys under their section, or both; strict about everything else."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from megacurl.config.errors import ConfigError, raise_problems
from megacurl.config.fields import FieldSpec, convert, field_specs, flatten, section_types
from megacurl.config.schema import Config
from megacurl.utils.files import atomic_write_text
from megacurl.utils.names import nearest_hint

_HEADER = """\
# Every setting of a MegaCURL run, as resolved. To run it again into another folder:
#   megacurl train --config THIS_FILE --run-dir OTHER
"""

# YAML 1.2 scalars. PyYAML's own are YAML 1.1, where `off` is false, `1e-6` a string and `1:30` 90.
_CORE_SCALARS: dict[str, tuple[str, str]] = {
    "tag:yaml.org,2002:null": (r"~|null|Null|NULL|", "~nN\0"),
    "tag:yaml.org,2002:bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "tag:yaml.org,2002:int": (r"[-+]?[0-9]+", "-+0123456789"),
    "tag:yaml.org,2002:float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
}


class _Loader(yaml.SafeLoader):
    """SafeLoader with YAML 1.2's scalars that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                continue  # the base class refuses it with a message of its own
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} occurs twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        """``010`` is 10, as YAML 1.2 says; PyYAML's constructor would read it as octal."""
        return int(str(self.construct_scalar(node)))


class _Dumper(yaml.SafeDumper):
    """SafeDumper that quotes what either YAML version would read as another type."""


def _register_scalars() -> None:
    _Loader.yaml_implicit_resolvers = {}
    for tag, (pattern, first) in _CORE_SCALARS.items():
        regexp = re.compile(f"(?:{pattern})$")
        initials = ["" if letter == "\0" else letter for letter in first]
        _Loader.add_implicit_resolver(tag, regexp, initials)
        _Dumper.add_implicit_resolver(tag, regexp, initials)


_register_scalars()
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_decimal)
_Dumper.add_representer(
    tuple,
    lambda dumper, value: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", value, flow_style=True
    ),
)


def load_yaml(path: str | Path) -> dict[str, object]:
    """Read a settings file and return field name -> value, only for the fields it names.

    A field may stand at the top level (``lr: 1e-6``) or under its section (``optimizer:``).
    Raises ConfigError with every problem: unreadable file, syntax, a key given twice, an unknown
    key (naming the nearest), a field under another section, a value of the wrong type.
    """
    file = Path(path)
    document = _read(file)
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigError(
            f"{file} holds a {type(document).__name__}, must be a mapping of settings"
        )
    values: dict[str, object] = {}
    problems: list[str] = []
    for key, value in document.items():
        if key in section_types() and (value is None or isinstance(value, Mapping)):
            for name, inner in (value or {}).items():
                _take(name, inner, str(key), file, values, problems)
        elif key in section_types() and key not in field_specs():
            problems.append(f"{file}: section {key!r} is {value!r}, must be a mapping of settings")
        else:
            _take(key, value, None, file, values, problems)
    raise_problems(problems)
    return values


def _read(file: Path) -> object:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"--config {file}: cannot be read: {reason}") from None
    try:
        document: object = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        detail = " ".join(str(error).replace("<unicode string>", file.name).split())
        raise ConfigError(f"--config {file}: not valid YAML: {detail}") from None
    return document


def _take(
    name: object,
    value: object,
    section: str | None,
    file: Path,
    values: dict[str, object],
    problems: list[str],
) -> None:
    specs = field_specs()
    where = f"{file}: {name}" if section is None else f"{file}: {section}.{name}"
    spec: FieldSpec | None = specs.get(name) if isinstance(name, str) else None
    if spec is None:
        candidates = [*specs, *section_types()] if section is None else specs
        problems.append(f"{where} is no setting{nearest_hint(str(name), candidates)}")
    elif section is not None and spec.section != section:
        problems.append(
            f"{where} belongs under {spec.section!r}; move it there or to the top level"
        )
    elif spec.name in values:
        problems.append(f"{where} is set twice, at the top level and under its section; keep one")
    else:
        try:
            values[spec.name] = convert(spec, value, where)
        except ConfigError as error:
            problems.extend(error.problems)


def dump_yaml(config: Config, path: str | Path) -> None:
    """Write every setting under its section, atomically; ``load_yaml`` gives the same values back.

    Raises OSError when the file cannot be written; an existing file then stays as it was.
    """
    flat = flatten(config)
    sections: dict[str, dict[str, object]] = {section: {} for section in section_types()}
    for spec in field_specs().values():
        sections[spec.section][spec.name] = flat[spec.name]
    body = yaml.dump(
        sections, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    atomic_write_text(path, _HEADER + "\n" + body)
