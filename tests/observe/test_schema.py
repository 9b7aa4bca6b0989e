# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The metric table: lookup, hints, and the generated page."""

from __future__ import annotations

from pathlib import Path

import pytest

from megacurl.observe.schema import (
    METRICS,
    UnknownMetricError,
    check_names,
    find_metric,
    metrics_markdown,
)

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_exact_row_finds_itself_and_has_a_unit_and_a_sentence() -> None:
    for metric in METRICS:
        assert metric.unit
        assert metric.description.endswith(".")
        if not metric.is_pattern:
            assert find_metric(metric.name) is metric
    assert len({metric.name for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("eval/aime24/avg@32", "eval/<set>/avg@<k>"),
        ("eval/my-set_2.0/pass@1", "eval/<set>/pass@<k>"),
        ("eval/math500/level/Level_5", "eval/<set>/level/<level>"),
        ("curriculum/phase", "curriculum/phase"),
        ("curriculum/bank/size", "curriculum/*"),
    ],
)
def test_patterns(name: str, row: str) -> None:
    assert find_metric(name).name == row


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("actor/losss", "actor/loss"),
        ("Actor/Grad-Norm", "actor/grad_norm"),
        ("rollout/acuracy", "rollout/accuracy"),
        ("eval/aime24/avg32", "eval/aime24/avg@<k>"),
        ("eval/aime24/avg@0", "eval/aime24/avg@<k>"),
        ("eval/aime24/lvl/3", "eval/aime24/level/3"),
    ],
)
def test_a_wrong_name_is_an_error_with_the_nearest_one(name: str, suggestion: str) -> None:
    with pytest.raises(UnknownMetricError) as caught:
        check_names(["step", name])
    assert f"metric {name!r}" in str(caught.value)
    assert f"did you mean {suggestion!r}?" in str(caught.value)


@pytest.mark.parametrize("name", ["", "curriculum/", "eval/a/b/avg@3", "eval/<set>/avg@<k>", "x"])
def test_near_patterns_are_not_accepted(name: str) -> None:
    with pytest.raises(UnknownMetricError):
        find_metric(name)


def test_docs_page_is_the_generated_one() -> None:
    assert DOCS.read_text(encoding="utf-8") == metrics_markdown(), (
        "run: python -m megacurl.observe.schema > docs/metrics.md"
    )


def test_page_has_every_row_and_escapes_bars() -> None:
    page = metrics_markdown()
    for metric in METRICS:
        assert f"| `{metric.name}` |" in page
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) == len(METRICS)
    assert all(line.replace(r"\|", "").count("|") == 4 for line in rows)
