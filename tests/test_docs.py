# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What the documentation names exists: flags and linked files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from megacurl.config.load import train_flags

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDES = [ROOT / "docs" / name for name in ("quickstart.md", "training.md", "troubleshooting.md")]
OTHERS = {
    *("--base", "--data-parallel-size", "--output", "--help"),  # scripts and other commands
    *("--nnodes", "--node-rank", "--nproc-per-node", "--standalone"),  # torchrun
    *("--master-addr", "--master-port", "--logdir"),
    "--lam-crtic",  # the misspelling that troubleshooting.md shows
}


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_flags_exist(page: Path) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", page.read_text()))
    assert named - set(train_flags()) - OTHERS == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
