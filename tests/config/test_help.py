# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl train --help``: every flag once, by group, a line each."""

from __future__ import annotations

import re

import pytest

from megacurl.config.fields import field_specs, section_types
from megacurl.config.help import COMMON, train_help
from megacurl.config.load import resolve_defaults, train_flags


def groups(text: str) -> dict[str, list[str]]:
    """Names of the flags below each title, in order."""
    found: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        title, *lines = block.split("\n")
        if all(line.startswith("  -") for line in lines) and lines:
            found[title.split(":")[0]] = [line.split()[0] for line in lines]
    return found


def test_every_flag_is_there_once_and_in_its_group() -> None:
    found = groups(train_help(resolve_defaults(), 100))
    assert list(found) == ["this command", "common", *section_types()]
    listed = [flag for flags in found.values() for flag in flags]
    own = {"-h,", "--config", "--help-algorithm", "--[no-]dry-run", "--world-size"}
    assert len(listed) == len(set(listed)) == len(field_specs()) + len(own)
    both = {flag.replace("[no-]", form) for flag in listed for form in ("", "no-")} - {"-h,"}
    assert both == set(train_flags())
    for section in section_types():
        specs = [s for s in field_specs().values() if s.section == section]
        names = [s.flag for s in specs if s.name not in COMMON]
        assert [flag.replace("[no-]", "") for flag in found[section]] == names
    assert found["common"][:3] == ["--hf-checkpoint", "--prompt-data", "--run-dir"]


def test_a_line_each_that_fits_and_is_not_cut_short() -> None:
    text = train_help(resolve_defaults(), 100)
    lines = text.splitlines()
    assert len(lines) < len(field_specs()) + 55
    assert max(map(len, lines)) <= 100
    assert "…" not in text
    for line in lines:
        if line.startswith("  -"):
            assert line.count("(") == line.count(")"), line
            assert re.match(r"  \S.{33,} {2}\S.*[\w\])}]$", line), line


@pytest.mark.parametrize(("columns", "width"), [("60", 80), ("80", 80), ("300", 120)])
def test_the_terminal_decides_on_the_width(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = train_help(resolve_defaults()).splitlines()
    assert width - 8 < max(map(len, lines)) <= width


def test_values_and_defaults() -> None:
    text = train_help(resolve_defaults("vapo"), 100)
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if line}
    assert lines["--length-adaptive-alpha"].startswith("X Actor lambda")
    assert lines["--length-adaptive-alpha"].endswith("[0.05]")
    assert lines["--kl-estimator"] == "k1|k2|k3 Estimator of the KL penalty [k1]"
    assert lines["--wd-early"] == "X X X X k1, c1, k2, c2 of Eq. 25 [1.6 -0.2 2.0 1.2]"
    assert lines["--[no-]bf16"].endswith("[off]")
    assert lines["--run-dir"] == "DIR Folder that receives everything the run writes"
    assert lines["--eval-prompt-data"].startswith("[NAME=]FILE ... Benchmark files")
