# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sampling rules: what every rule promises, and each rule's own behaviour."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from megacurl.config.load import resolve_defaults
from megacurl.curriculum.replay_bank import ReplayBank
from megacurl.curriculum.sampling.dynamic import DynamicSampling
from megacurl.curriculum.sampling.registry import get_rule, register_rule, rule_names
from megacurl.curriculum.sampling.rule import GroupOutcome, SamplingRule
from megacurl.curriculum.sampling.uniform import UniformSampling
from megacurl.curriculum.sampling.vcrl import VCRLSampling

SIZE, ATTEMPTS = 6, 4
RULES: dict[str, Callable[[], SamplingRule]] = {
    "uniform": lambda: UniformSampling(SIZE),
    "dynamic": lambda: DynamicSampling(SIZE, max_rounds=3),
    "vcrl": lambda: VCRLSampling(SIZE, ReplayBank(), kappa_switch_step=5),
}


def outcome(question: str, successes: int) -> GroupOutcome:
    correct = [j < successes for j in range(ATTEMPTS)]
    return GroupOutcome(question, tuple(correct), tuple(map(float, correct)))


def graded(question: str, *scores: float) -> GroupOutcome:
    return GroupOutcome(question, tuple(score == 1.0 for score in scores), scores)


def run(rule: SamplingRule, step: int, skill: Callable[[str], int]) -> tuple[list[str], set[str]]:
    """One step over fresh questions s<step>/0..; what is chosen, and what was rolled out."""
    rolled: set[str] = set()
    ask, asked = rule.begin(step), 0
    while ask:
        assert asked < 10
        questions = [f"s{step}/{asked}/{i}" for i in range(ask.fresh)] + list(ask.again)
        assert not rolled & set(questions)
        rule.observe([outcome(q, skill(q)) for q in questions])
        rolled |= set(questions)
        ask, asked = rule.more(), asked + 1
    return rule.finish(), rolled


@pytest.mark.parametrize("name", RULES)
def test_every_rule_ends_stays_in_the_batch_size_and_can_be_restored(name: str) -> None:
    r = random.Random(0)
    rule = RULES[name]()
    for step in range(30):
        skills = {q: r.choice([0, 0, 1, 2, 4, 4]) for q in map(str, range(7))}
        chosen, rolled = run(rule, step, lambda q, s=skills: s[q[-1]])
        assert len(chosen) == len(set(chosen)) <= SIZE
        assert set(chosen) <= rolled
        assert all(isinstance(value, float) for value in rule.metrics().values())
        again = RULES[name]()
        again.load_state_dict(json.loads(json.dumps(rule.state_dict())))
        rule = again


def test_dynamic_sampling_goes_on_until_the_batch_is_full() -> None:
    rule = DynamicSampling(SIZE, max_rounds=5)
    chosen, _ = run(rule, 0, lambda q: 2 if q.endswith(("0", "1")) else 0)
    assert chosen == ["s0/0/0", "s0/0/1", "s0/1/0", "s0/1/1", "s0/2/0", "s0/2/1"]
    assert rule.metrics() == {"rounds": 3.0, "kept": pytest.approx(1 / 3), "shortfall": 0.0}


def test_dynamic_sampling_ends_after_its_rounds_with_what_there_is() -> None:
    rule = DynamicSampling(SIZE, max_rounds=3)
    chosen, rolled = run(rule, 0, lambda q: 2 if q == "s0/1/3" else 4)
    assert chosen == ["s0/1/3"]
    assert len(rolled) == 3 * SIZE
    assert rule.metrics()["shortfall"] == 5.0
    assert run(rule, 1, lambda q: 0)[0] == []
    with pytest.raises(ValueError, match="max_rounds is 0"):
        DynamicSampling(SIZE, max_rounds=0)


def test_vcrl_replays_only_what_is_missing_and_trains_on_it_whatever_comes() -> None:
    rule = VCRLSampling(SIZE, ReplayBank(), kappa_switch_step=1)
    first, _ = run(rule, 0, lambda q: 2)
    assert len(first) == SIZE
    second, _ = run(rule, 1, lambda q: 2 if q in ("s1/0/0", "s1/0/1") else 0)
    assert second == ["s1/0/0", "s1/0/1", *first[:4]]
    metrics = rule.metrics()
    assert metrics["kappa"] == 0.8
    assert (metrics["replayed"], metrics["shortfall"], metrics["bank_size"]) == (4.0, 0.0, 8.0)


NEVER_RIGHT = {
    "equal": (0.5, 0.5, 0.5, 0.5),
    "near": (0.5, 0.5, 0.5, 0.75),
    "apart": (0.0, 0.0, 0.75, 0.75),
}


def test_graded_groups_count_by_their_scores_although_none_is_right() -> None:
    outcomes = [graded(question, *scores) for question, scores in NEVER_RIGHT.items()]
    assert not any(o.successes for o in outcomes)
    dynamic = DynamicSampling(SIZE)
    dynamic.begin(0)
    dynamic.observe(outcomes)
    assert dynamic.finish() == ["near", "apart"]
    vcrl = VCRLSampling(SIZE, ReplayBank(), kappa_early=0.1)
    vcrl.begin(0)
    vcrl.observe(outcomes)
    assert vcrl.finish() == ["apart"]
    # Squares over pairs, 4 x 0.75^2, over those of half ones and half zeros, 4.
    assert vcrl.bank.entries["apart"].priority == 0.5625


def test_the_state_of_another_rule_is_refused() -> None:
    state = RULES["vcrl"]().state_dict()
    with pytest.raises(ValueError, match="UniformSampling keeps no state"):
        RULES["uniform"]().load_state_dict(state)
    with pytest.raises(ValueError, match="no replay bank"):
        RULES["vcrl"]().load_state_dict({})


def test_rules_are_found_by_name_and_built_from_the_settings() -> None:
    assert rule_names() == ["dynamic", "uniform", "vcrl"]
    built = {
        preset: get_rule(config.sampling.sampling).build(config)
        for preset in ("cvpo", "dapo", "vcrl")
        for config in (resolve_defaults(preset),)
    }
    assert [type(rule) for rule in built.values()] == [
        UniformSampling,
        DynamicSampling,
        VCRLSampling,
    ]
    assert all(rule.begin(0).fresh == 256 for rule in built.values())
    with pytest.raises(ValueError, match=r"unknown sampling rule 'vrcl' \(did you mean 'vcrl'"):
        get_rule("vrcl")
    with pytest.raises(ValueError, match="'vcrl' is registered twice"):
        register_rule("vcrl")(get_rule("uniform").build)
