# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``--help-algorithm``: the numbers of every preset with their sources, none that it ignores."""

from __future__ import annotations

import pytest

from megacurl.config.errors import ConfigError
from megacurl.config.preset_help import preset_help
from megacurl.config.presets import PRESETS


def rows(name: str) -> dict[str, tuple[str, str]]:
    """Flag -> (value, source)."""
    lines = [line for line in preset_help(name).splitlines() if line.startswith("  --")]
    cells = [[cell for cell in line.strip().split("  ") if cell] for line in lines]
    return {c[0].split()[0]: (" ".join(c[0].split()[1:]), c[1].strip()) for c in cells}


@pytest.mark.parametrize("name", PRESETS)
def test_every_number_has_a_source(name: str) -> None:
    found = rows(name)
    assert len(found) > 10
    assert all(source not in ("", "default") for _, source in found.values()), found
    for key, value in PRESETS[name].overrides.items():
        flag = "--" + key.replace("_", "-")
        if flag in found and isinstance(value, float):
            assert float(found[flag][0]) == value


def test_numbers_of_what_is_not_there_are_left_out() -> None:
    grpo, vapo = rows("grpo"), rows("vapo")
    assert not {"--lam-critic", "--critic-warmup-iters", "--gamma", "--ws-lambda-p"} & set(grpo)
    assert not {"--lam-policy", "--grpo-std", "--wd-early", "--kl-estimator"} & set(vapo)
    assert grpo["--grpo-eps"] == ("1e-06", "common practice (verl, slime)")
    assert vapo["--length-adaptive-alpha"] == ("0.05", "VAPO paper")
    assert rows("cvpo")["--wd-early"] == ("1.6 -0.2 2.0 1.2", "CVPO paper, as printed")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gspo'"):
        preset_help("gsp")
