# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One training step gives the same numbers in every layout."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from megacurl.config.schema import Config
from tests import jobs
from tests.tiny import make_trajectories
from tests.world import World

LAYOUTS = {  # name -> world size, flags
    "tp2": (2, {"tensor_model_parallel_size": 2}),
    "tp2-sp": (2, {"tensor_model_parallel_size": 2, "sequence_parallel": True}),
    "pp2": (2, {"pipeline_model_parallel_size": 2}),
    "tp2-pp2": (4, {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2}),
    "tp2-pp2-sp": (
        4,
        {
            "tensor_model_parallel_size": 2,
            "pipeline_model_parallel_size": 2,
            "sequence_parallel": True,
        },
    ),
    "pp2 interleaved": (
        2,
        {"pipeline_model_parallel_size": 2, "num_layers_per_virtual_pipeline_stage": 1},
    ),
    "tp2-pp2-sp interleaved": (
        4,
        {
            "tensor_model_parallel_size": 2,
            "pipeline_model_parallel_size": 2,
            "num_layers_per_virtual_pipeline_stage": 1,
            "sequence_parallel": True,
        },
    ),
    "pp4": (4, {"pipeline_model_parallel_size": 4}),
    "dp2": (2, {}),
    "dp4": (4, {}),
    "recompute": (
        2,
        {"pipeline_model_parallel_size": 2, "recompute_granularity": "full"},
    ),
    "recompute attention": (2, {"recompute_granularity": "selective"}),
    "small micro-batches": (1, {"max_tokens_per_micro_batch": 40}),
    "one long row": (1, {"max_tokens_per_micro_batch": 100_000, "log_prob_chunk_size": 7}),
}
DIFFICULTY = {"q0": 1.1, "q1": 0.9, "q2": 1.2}


def train(
    world: Callable[[int], World], folder: Path, size: int, flags: dict[str, Any]
) -> dict[str, Any]:
    config = settings(folder, flags)
    trajectories = make_trajectories()
    results: dict[str, Any] = world(size).run(jobs.train_once, config, trajectories, DIFFICULTY)[0]
    return results


def settings(folder: Path, flags: dict[str, Any]) -> Config:
    return jobs.settings(
        folder,
        **{
            "lr": 1e-3,
            "critic_lr": 1e-3,
            "lam_critic": 0.9,
            "clip_grad": 0.1,
            "weight_decay": 0.0,
            "entropy_coef": 0.01,
            "make_vocab_size_divisible_by": 8,
            "max_tokens_per_micro_batch": 90,
            **flags,
        },
    )


def norm(tensors: dict[str, torch.Tensor]) -> float:
    return torch.stack([t.double().norm() for t in tensors.values()]).norm().item()


@pytest.fixture(scope="module")
def references(
    world: Callable[[int], World], tiny_model: Callable[[str], Path]
) -> Callable[[str, bool], dict[str, Any]]:
    made: dict[tuple[str, bool], dict[str, Any]] = {}

    def of(kind: str, distributed: bool) -> dict[str, Any]:
        key = kind, distributed
        if key not in made:
            flags = {"use_distributed_optimizer": distributed}
            made[key] = train(world, tiny_model(kind), 1, flags)
        return made[key]

    return of


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        *itertools.product(["tp2-sp", "dp2"], ["grpo", "dr_grpo", "rloo", "gspo", "orz", "vc_ppo"]),
        ("pp2", "grpo"),
        ("dp4", "gspo"),
        ("small micro-batches", "gspo"),
    ],
)
def test_same_step_of_other_algorithms(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], name: str, preset: str
) -> None:
    """A group's responses lie on different ranks; its advantages may not notice."""
    size, flags = LAYOUTS[name]
    more = {"preset": preset, "updates_per_rollout": 3, "lam_critic": 1.0, "entropy_coef": 0.0}
    expected = reference_of(world, tiny_model("qwen2-tied"), more)
    found = train(world, tiny_model("qwen2-tied"), size, {**flags, **more})
    assert found.keys() == expected.keys()
    assert ("values" in found) == (preset in ("orz", "vc_ppo"))
    assert any(k.startswith("critic/") for k in found["metrics"]) == ("values" in found)
    for metric, value in expected["metrics"].items():
        bound = 1e-4 if metric.startswith("cvpo/sigma_entropy_corr") else 1e-6
        assert found["metrics"][metric] == pytest.approx(value, rel=1e-4, abs=bound), metric
    torch.testing.assert_close(found["advantages"], expected["advantages"], rtol=1e-5, atol=1e-4)
    assert bool(expected["advantages"].abs().sum() > 1)
    gap = norm({n: found["update"][n] - t for n, t in expected["update"].items()})
    assert norm(expected["update"]) > 0
    assert gap <= 5e-3 * norm(expected["update"])


@pytest.mark.parametrize("name", ["tp2-sp", "dp2", "pp2", "pp2 interleaved", "small micro-batches"])
def test_one_optimizer_step_measures_the_old_log_probs_itself(
    world: Callable[[int], World], tiny_model: Callable[[str], Path], name: str
) -> None:
    size, flags = LAYOUTS[name]
    config = settings(tiny_model("qwen2-tied"), {**flags, "preset": "grpo"})
    trajectories = make_trajectories()
    expected, *_ = world(size).run(jobs.train_once, config, trajectories, DIFFICULTY)
    for found in world(size).run(jobs.train_once, config, trajectories, DIFFICULTY, True):
        assert found.keys() == expected.keys()
        for metric, value in expected["metrics"].items():
            assert found["metrics"][metric] == pytest.approx(value, rel=1e-6, abs=1e-7), metric
        for part in ("log_probs", "entropy"):
            assert bool(expected[part].abs().min() > 0)
            torch.testing.assert_close(found[part], expected[part], rtol=1e-6, atol=1e-5)
        gap = norm({n: found["update"][n] - t for n, t in expected["update"].items()})
        assert gap <= 1e-4 * norm(expected["update"])
        assert found["metrics"]["actor/ratio_dev_first"] == 0


def test_log_probs_of_responses_that_are_all_filtered_out(
    world: Callable[[int], World], tiny_model: Callable[[str], Path]
) -> None:
    """No micro-batch goes through the update then, yet the metrics want them."""
    flags = {"preset": "grpo", "overlong_filter": True}
    config = settings(tiny_model("qwen2-tied"), flags)
    trajectories = [dataclasses.replace(t, truncated=True) for t in make_trajectories()]
    (expected,) = world(1).run(jobs.train_once, config, trajectories, DIFFICULTY)
    (found,) = world(1).run(jobs.train_once, config, trajectories, DIFFICULTY, True)
    assert found["metrics"]["data/skipped_batches"] == 1
    assert norm(found["update"]) == 0
    torch.testing.assert_close(found["log_probs"], expected["log_probs"])


def test_several_optimizer_steps_want_the_old_log_probs(
    world: Callable[[int], World], tiny_model: Callable[[str], Path]
) -> None:
    config = settings(tiny_model("qwen2-tied"), {"preset": "grpo", "updates_per_rollout": 2})
    with pytest.raises(AssertionError, match="2 optimizer steps need the log-probs they start"):
        world(1).run(jobs.train_once, config, make_trajectories(), DIFFICULTY, True)


_REFERENCES: dict[str, dict[str, Any]] = {}


def reference_of(
    world: Callable[[int], World], folder: Path, flags: dict[str, Any]
) -> dict[str, Any]:
    """The step on one process."""
    if flags["preset"] not in _REFERENCES:
        _REFERENCES[flags["preset"]] = train(world, folder, 1, flags)
    return _REFERENCES[flags["preset"]]


@pytest.mark.parametrize("distributed", [True, False], ids=["sharded-adam", "plain-adam"])
@pytest.mark.parametrize("kind", ["qwen2-tied", "llama-untied"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_same_step_in_every_layout(
    world: Callable[[int], World],
    tiny_model: Callable[[str], Path],
    references: Callable[[str, bool], dict[str, Any]],
    name: str,
    kind: str,
    distributed: bool,
) -> None:
    size, flags = LAYOUTS[name]
    expected = references(kind, distributed)
    found = train(
        world, tiny_model(kind), size, {**flags, "use_distributed_optimizer": distributed}
    )

    assert found["metrics"].keys() == expected["metrics"].keys()
    for metric, value in expected["metrics"].items():
        # Rounding of values that hardly differ is large beside their differences.
        bound = 1e-4 if metric.startswith("cvpo/sigma_entropy_corr") else 1e-6
        assert found["metrics"][metric] == pytest.approx(value, rel=1e-5, abs=bound), metric
    assert expected["metrics"]["actor/grad_norm"] > 0.1  # clipping was at work
    torch.testing.assert_close(found["values"], expected["values"], rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(found["log_probs"], expected["log_probs"], rtol=1e-5, atol=1e-3)
    for part, bound in (("grad", 1e-5), ("update", 1e-3)):
        if part not in expected:
            continue
        gap = norm({n: found[part][n] - t for n, t in expected[part].items()})
        assert gap <= bound * norm(expected[part]), (part, gap, norm(expected[part]))
    if "critic_head_grad" in expected:
        torch.testing.assert_close(
            found["critic_head_grad"], expected["critic_head_grad"], rtol=1e-4, atol=1e-6
        )
