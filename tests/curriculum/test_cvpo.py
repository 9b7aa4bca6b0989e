# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The curriculum as a whole: rounds in, weights out, resumable at any round."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import torch

from megacurl.config.schema import CVPOConfig
from megacurl.curriculum.cvpo import CVPOCurriculum
from megacurl.curriculum.difficulty import difficulty_weight

Round = dict[str, int]
K = 16


def feed(curriculum: CVPOCurriculum, counts: Round) -> dict[str, float]:
    ids = [q for q in counts for _ in range(K)]
    return curriculum.observe(ids, [j < s for s in counts.values() for j in range(K)])


def weight_of(rho: float, phase: str) -> float:
    return difficulty_weight(torch.tensor(rho, dtype=torch.float64), phase).item()


def random_rounds(n: int, seed: int = 0) -> list[Round]:
    rng = random.Random(seed)
    skill = {f"q{i}": rng.choice([0.05, 0.2, 0.5, 0.97]) for i in range(40)}
    return [
        {q: sum(rng.random() < skill[q] for _ in range(K)) for q in rng.sample(sorted(skill), 12)}
        for _ in range(n)
    ]


def stagnating_rounds() -> list[Round]:
    """Hard and easy questions whose posteriors stand still from the second round on."""
    return [{"hard": 2, "easy": 15}] * 30


def test_switches_within_the_round_that_stagnates_and_stays() -> None:
    curriculum = CVPOCurriculum(CVPOConfig())
    phases = []
    for counts in stagnating_rounds():
        weights = feed(curriculum, counts)
        phases.append(curriculum.phase)
        assert weights["hard"] == weight_of(2 / 16, curriculum.phase)
        assert weights["easy"] == weight_of(15 / 16, curriculum.phase)
    switch = phases.index("bottleneck")
    assert 0 < switch < 29 and set(phases[switch:]) == {"bottleneck"}
    feed(curriculum, {"hard": 16, "easy": 0})
    assert curriculum.phase == "bottleneck"


def test_first_visits_take_no_part_in_the_trend() -> None:
    curriculum = CVPOCurriculum(CVPOConfig())
    feed(curriculum, {"a": 0, "b": 16})
    assert curriculum.last_test is not None
    assert (curriculum.last_test.n_low, curriculum.last_test.n_high) == (0, 0)
    feed(curriculum, {"a": 0, "c": 16})
    assert (curriculum.last_test.n_low, curriculum.last_test.n_high) == (1, 0)


def test_tracked_scope_counts_questions_that_were_not_sampled_as_unchanged() -> None:
    curriculum = CVPOCurriculum(CVPOConfig(trend_scope="tracked"))
    feed(curriculum, {f"hard{i}": 0 for i in range(30)} | {f"easy{i}": 16 for i in range(30)})
    assert curriculum.phase == "early", "all first visits"
    feed(curriculum, {"hard0": 0, "new": 16})
    test = curriculum.last_test
    assert test is not None and (test.n_low, test.n_high) == (30, 30)
    assert curriculum.phase == "bottleneck"


@pytest.mark.parametrize("source", ["latest", "posterior", "previous", "ema"])
def test_accuracy_that_the_weight_sees(source: str) -> None:
    curriculum = CVPOCurriculum(CVPOConfig(wd_rho=source, wd_ema=0.75))
    first = feed(curriculum, {"q": 4})["q"]
    second = feed(curriculum, {"q": 12})["q"]
    rho = {
        "latest": (4 / 16, 12 / 16),
        "posterior": (5 / 18, 17 / 34),
        "previous": (0.5, 4 / 16),
        "ema": (4 / 16, 0.75 * 4 / 16 + 0.25 * 12 / 16),
    }[source]
    assert [first, second] == pytest.approx([weight_of(r, "early") for r in rho], rel=1e-12)


def test_trajectories_may_come_in_any_order() -> None:
    ordered, shuffled = (CVPOCurriculum(CVPOConfig()) for _ in range(2))
    for i, counts in enumerate(random_rounds(8)):
        ids = [q for q in counts for _ in range(K)]
        verdicts = [j < s for s in counts.values() for j in range(K)]
        pairs = list(zip(ids, verdicts, strict=True))
        random.Random(i).shuffle(pairs)
        weights = ordered.observe(ids, verdicts)
        assert shuffled.observe([q for q, _ in pairs], [v for _, v in pairs]) == weights
    assert ordered.metrics() == shuffled.metrics()


@pytest.mark.parametrize(
    "settings",
    [{}, {"trend_scope": "tracked", "wd_rho": "ema", "phase_patience": 2},
     {"phase_one_way": False, "trend_aggregate": "frac", "trend_frac": 0.5, "beta_decay": 0.9}],
)  # fmt: skip
def test_resumed_run_equals_the_uninterrupted_one(settings: dict[str, Any]) -> None:
    config, rounds = CVPOConfig(**settings), random_rounds(12) + stagnating_rounds()[:8]
    whole = CVPOCurriculum(config)
    expected = [(feed(whole, counts), whole.phase, whole.metrics()) for counts in rounds]
    for cut in (0, 1, 7, 15, 19):
        first, second = CVPOCurriculum(config), CVPOCurriculum(config)
        for counts in rounds[:cut]:
            feed(first, counts)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        found = [(feed(second, counts), second.phase, second.metrics()) for counts in rounds[cut:]]
        assert found == expected[cut:]
        assert second.state_dict() == whole.state_dict()


def test_metrics_before_and_after_a_round() -> None:
    curriculum = CVPOCurriculum(CVPOConfig())
    assert curriculum.metrics() == {
        "curriculum/phase": 0.0,
        "curriculum/tracked": 0.0,
        "curriculum/posterior_mean": 0.0,
    }
    for counts in stagnating_rounds():
        feed(curriculum, counts)
    metrics = curriculum.metrics()
    assert metrics["curriculum/phase"] == 1.0 and metrics["curriculum/tracked"] == 2.0
    assert metrics["curriculum/n_low"] == metrics["curriculum/n_high"] == 1.0
    assert 0 < metrics["curriculum/mean_low_delta"] < 0.05
    assert metrics["curriculum/posterior_mean"] == pytest.approx((61 + 451) / 2 / 482)


def test_the_same_question_twice_in_a_batch_is_one_visit() -> None:
    curriculum = CVPOCurriculum(CVPOConfig())
    curriculum.observe(["q"] * 4 + ["r"] + ["q"] * 4, [True] * 4 + [False] + [False] * 4)
    record = curriculum.tracker.records["q"]
    assert (record.alpha, record.beta, record.visits) == (5.0, 5.0, 1)


def test_state_of_17k_questions_is_small() -> None:
    curriculum = CVPOCurriculum(CVPOConfig())
    ids = [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(17000)]
    curriculum.observe(ids, [i % 3 == 0 for i in range(17000)])
    assert len(json.dumps(curriculum.state_dict())) < 2_000_000


def test_bad_input_is_named_and_changes_nothing() -> None:
    curriculum = CVPOCurriculum(CVPOConfig())
    before = curriculum.state_dict()
    with pytest.raises(ValueError, match="2 prompt_ids but 1 verdicts"):
        curriculum.observe(["a", "b"], [True])
    with pytest.raises(ValueError, match="prompt id 7 is no string"):
        curriculum.observe(["a", 7], [True, False])
    with pytest.raises(ValueError, match="state has version None"):
        curriculum.load_state_dict({})
    assert curriculum.state_dict() == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trend_low": 0.9}, "trend_low=0.9, trend_high=0.8"),
        ({"trend_frac": 0.0}, "trend_frac is 0.0"),
        ({"wd_rho": "best"}, "wd_rho is 'best'"),
        ({"beta_prior": (1.0, -1.0)}, "beta_prior is"),
        ({"phase_patience": 0}, "phase_patience is 0"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CVPOCurriculum(CVPOConfig(**settings))
