# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Algorithm presets: a name for a set of settings, each of which a YAML key or flag overrides.

A new algorithm is one more entry in :data:`PRESETS`. Only what differs from the schema is listed,
and the schema's defaults are CVPO's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from megacurl.config.errors import ConfigError
from megacurl.config.fields import convert, field_specs
from megacurl.utils.names import nearest_hint


@dataclass(frozen=True)
class Preset:
    """What a preset is (for help and docs) and its overrides, field name -> value."""

    summary: str
    overrides: Mapping[str, object]


PRESETS: dict[str, Preset] = {
    # The settings printed in the CVPO paper are the schema's defaults.
    "cvpo": Preset("length-adaptive GAE weighted by W_S and W_D", {}),
    # VAPO paper: 50 steps of value pretraining, decoupled lambda, alpha = 0.05.
    "vapo": Preset(
        "length-adaptive GAE, Monte-Carlo critic targets, clip-higher, positive LM loss",
        {
            "length_adaptive_alpha": 0.05,
            "lam_critic": 1.0,
            "eps_clip": 0.2,
            "eps_clip_high": 0.28,
            "positive_lm_coef": 0.1,
            "critic_warmup_iters": 50,
            "use_w_s": False,
            "use_w_d": False,
        },
    ),
    # Schulman et al. 2017 with the settings common in language-model trainers.
    "ppo": Preset(
        "GAE with one lambda, whitened advantages, symmetric clip, value clip",
        {
            "length_adaptive_alpha": None,
            "lam_policy": 0.95,
            "lam_critic": 0.95,
            "whiten_advantages": "sample",
            "eps_clip": 0.2,
            "eps_clip_high": 0.2,
            "value_clip": 0.2,
            "positive_lm_coef": 0.0,
            "critic_warmup_iters": 0,
            "use_w_s": False,
            "use_w_d": False,
        },
    ),
}


def preset_values(name: str) -> dict[str, object]:
    """Return the overrides of preset ``name``, checked against the schema's types.

    Raises ConfigError for an unknown preset, naming the nearest, and for a preset that sets a field
    the schema does not have.
    """
    if name not in PRESETS:
        hint = nearest_hint(name, PRESETS)
        raise ConfigError(
            f"--algorithm {name!r} is no preset{hint}; choose one of {', '.join(PRESETS)}"
        )
    specs = field_specs()
    values: dict[str, object] = {}
    for key, value in PRESETS[name].overrides.items():
        if key not in specs or key == "algorithm":
            raise ConfigError(
                f"preset {name!r} sets {key!r}{nearest_hint(key, specs)}: no such field"
            )
        values[key] = convert(specs[key], value, f"preset {name!r}: {key}")
    return values
