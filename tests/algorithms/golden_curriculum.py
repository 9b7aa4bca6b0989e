# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Golden quantities of the curriculum."""

from __future__ import annotations

from typing import Any

import torch

from megacurl.config.schema import CVPOConfig
from megacurl.curriculum.cvpo import CVPOCurriculum
from megacurl.curriculum.difficulty import difficulty_peak, difficulty_weight
from megacurl.curriculum.phase import PhaseSwitch
from megacurl.curriculum.posterior import BetaTracker
from megacurl.curriculum.trend import StagnationTest, stagnation_test
from tests.algorithms.golden_support import Inputs, Outputs


def run_w_d(i: Inputs, dtype: torch.dtype) -> Outputs:
    return {"w_d": difficulty_weight(torch.tensor(i["rho"], dtype=dtype), i["phase"]).tolist()}


def run_w_d_peak(i: Inputs, dtype: torch.dtype) -> Outputs:
    return dict(zip(("argmax", "max"), difficulty_peak(i["phase"]), strict=True))


def run_beta_tracker(i: Inputs, dtype: torch.dtype) -> Outputs:
    tracker = BetaTracker(tuple(i["prior"]), decay=i["decay"])
    rows = []
    for successes, attempts in i["updates"]:
        u = tracker.observe({"q": (successes, attempts)})["q"]
        row = {"s": u.successes, "k": u.attempts, "old": u.old_mean, "mean": u.mean}
        row |= {"delta": u.delta, "latest": u.latest, "alpha": u.alpha, "beta": u.beta}
        if len(rows) == 0:
            assert u.delta is None
        rows.append(row)
    return {"rows": rows}


def _test_fields(test: StagnationTest) -> Outputs:
    names = ("low_ok", "high_ok", "stagnant", "n_low", "n_high")
    return {name: getattr(test, name) for name in names}


def run_stagnation(i: Inputs, dtype: torch.dtype) -> Outputs:
    test = stagnation_test(
        i["means"],
        i["deltas"],
        aggregate=i["agg"],
        frac=i["frac"],
        empty_is_stagnant=i["empty"] == "true",
    )
    return _test_fields(test)


def run_phase_switch(i: Inputs, dtype: torch.dtype) -> Outputs:
    switch = PhaseSwitch(one_way=i["one_way"], patience=i["patience"], min_round=i["min_round"])
    return {"phase": [switch.step(bool(s)) for s in i["stagnant"]]}


def run_curriculum(i: Inputs, dtype: torch.dtype) -> Outputs:
    settings: dict[str, Any] = {
        "trend_scope": i["scope"],
        "trend_aggregate": i["agg"],
        "trend_empty": i["empty"],
        "phase_one_way": i["one_way"],
        "wd_rho": i["rho"],
    }
    optional = {"frac": "trend_frac", "patience": "phase_patience", "min_round": "phase_min_round"}
    settings |= {field: i[name] for name, field in optional.items() if name in i}
    curriculum = CVPOCurriculum(CVPOConfig(**settings))
    by_posterior = CVPOCurriculum(CVPOConfig(**{**settings, "wd_rho": "posterior"}))
    tracker = BetaTracker()
    rounds = []
    for counts in i["rounds"]:
        ids = [q for q in counts for _ in range(i["k"])]
        correct = [j < s for s in counts.values() for j in range(i["k"])]
        weights = curriculum.observe(ids, correct)
        posterior_weights = by_posterior.observe(ids, correct)
        updates = tracker.observe({q: (s, i["k"]) for q, s in counts.items()})
        assert curriculum.last_test is not None
        rounds.append(
            {
                "mean": {q: curriculum.tracker.records[q].mean for q in counts},
                "delta": {q: u.delta for q, u in updates.items()},
                "test": _test_fields(curriculum.last_test),
                "phase": curriculum.phase,
                "w_d": weights,
                "w_d_posterior": posterior_weights,
            }
        )
    return {"rounds": rounds}
