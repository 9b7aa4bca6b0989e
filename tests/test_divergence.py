# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What a diverged run tells."""

from __future__ import annotations

from pathlib import Path

from megacurl.divergence import explain_divergence
from tests import jobs

CONFIG = jobs.settings("model", run_dir="runs/a", lr=1e-3, critic_lr=2e-3)
ERROR = FloatingPointError("the actor's gradient norm is nan")


def test_the_newest_checkpoint_and_those_before() -> None:
    folder = Path("runs/a/checkpoints")
    saved = [folder / "step_000009", folder / "step_000008", folder / "step_000007"]
    happened, go_on, further = explain_divergence(ERROR, CONFIG, 9, saved).problems
    assert happened == "the run has diverged after step 9: the actor's gradient norm is nan"
    assert go_on == (
        "go on from runs/a/checkpoints/step_000009 with a lower --lr (it was 0.001) or --critic-lr "
        "(it was 0.002): give it as --load, with --config runs/a/config.yaml"
    )
    assert further == "if that diverges at once, go back further: step_000008, step_000007"


def test_a_checkpoint_of_another_run_needs_a_new_folder() -> None:
    _, go_on = explain_divergence(ERROR, CONFIG, 9, [Path("runs/b/step_000009")]).problems
    assert go_on.endswith("with --config runs/a/config.yaml and a new --run-dir")


def test_without_a_checkpoint() -> None:
    error = explain_divergence(ERROR, CONFIG, 0, [])
    assert error.problems[1].startswith("it has no checkpoint: start again with a lower --lr")
    assert str(error).splitlines() == list(error.problems)
