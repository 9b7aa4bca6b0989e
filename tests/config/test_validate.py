# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every rule of the validator is broken once; the message names flag, value and fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from megacurl.config.bounds import BOUNDS, Bound
from megacurl.config.errors import ConfigError
from megacurl.config.fields import field_specs, flag_name
from megacurl.config.presets import preset_values
from megacurl.config.schema import Config
from megacurl.config.validate import find_problems, validate_config

MakeConfig = Callable[..., Config]


def test_a_usable_config_has_no_problems(make_config: MakeConfig) -> None:
    assert find_problems(make_config()) == []
    assert find_problems(make_config(), "plan") == []
    validate_config(make_config())


# One contradiction each: fields, then what the message must say in this order.
_CONTRADICTIONS: list[tuple[dict[str, object], list[str]]] = [
    ({"train_iters": 0, "critic_warmup_iters": 0}, ["--train-iters 0", "at least 1"]),
    ({"rollout_top_p": 0.95}, ["--rollout-top-p 0.95", "exactly 1", "ratio", "--eval-top-p"]),
    ({"rollout_top_k": 50}, ["--rollout-top-k 50", "exactly 0", "ratio"]),
    ({"rollout_temperature": 0.0}, ["--rollout-temperature 0.0", "above 0"]),
    ({"gamma": 1.5}, ["--gamma 1.5", "above 0 and at most 1"]),
    ({"lr": float("nan")}, ["--lr nan", "above 0"]),
    ({"lr": float("inf")}, ["--lr inf", "above 0"]),
    ({"wd_early": (1.0, float("nan"), 1.0, 1.0)}, ["--wd-early 1.0 nan 1.0 1.0", "finite"]),
    ({"beta_prior": (1.0, 0.0)}, ["--beta-prior 1.0 0.0", "above 0"]),
    ({"ws_alpha_n": 1.2}, ["--ws-alpha-n 1.2", "at least 0 and at most 1", "sign"]),
    ({"variance_coefficient": 1.2}, ["--variance-coefficient 1.2", "--ws-alpha-n at most 1"]),
    ({"trend_low": 0.8}, ["--trend-low 0.8", "--trend-high 0.8"]),
    ({"algorithm": "vap"}, ["--algorithm 'vap'", "'vapo'"]),
    ({"reward_wrong": 1.0}, ["--reward-wrong 1", "below --reward-correct 1"]),
    ({"kl_coef": 0.1, "kl_placement": "loss"}, ["--kl-estimator k1", "k2 or k3"]),
    ({"train_iters": 20}, ["--train-iters 20", "--critic-warmup-iters 21", "never"]),
    ({"critic_warmup_min_iters": 22}, ["--critic-warmup-min-iters 22", "at most", "21"]),
    ({"use_critic": False, "use_w_d": False}, ["--use-w-s", "no critic", "--no-use-w-s"]),
    (
        {"use_critic": False, "use_w_s": False, "truncation": "bootstrap"},
        ["--truncation bootstrap", "no critic", "terminal"],
    ),
    (
        {"use_critic": False, "use_w_s": False, "lam_critic": 0.5},
        ["--lam-critic 0.5", "no effect", "--algorithm cvpo", "no critic", "leave it out"],
    ),
    ({"ratio_level": "sequence"}, ["--ratio-level sequence", "token-mean", "GSPO"]),
    ({"overlong_buffer": 10}, ["--overlong-buffer 10", "no effect", "--overlong-penalty 0"]),
    (
        {"overlong_buffer": 7000, "overlong_penalty": 1.0},
        ["--overlong-buffer 7000", "at most", "--rollout-max-response-len 6144"],
    ),
    ({"vcrl_kappa": (0.3, 0.5)}, ["--vcrl-kappa 0.3 0.5", "no effect", "--sampling vcrl"]),
    ({"dynamic_max_rounds": 3}, ["--dynamic-max-rounds 3", "no effect", "--sampling uniform"]),
    (
        {"sampling": "vcrl", "replay_rollouts": "r"},
        ["--replay-rollouts r", "--sampling vcrl", "--sampling uniform"],
    ),
    ({"rollout_engine": "vllm-server"}, ["vllm-server", "--rollout-urls", "--rollout-launch N"]),
    (
        {"rollout_engine": "vllm", "rollout_launch": 2},
        ["--rollout-launch 2", "--rollout-engine vllm", "leave it out", "vllm-server"],
    ),
    (
        {"rollout_urls": ("http://a:1", "http://b:1")},
        ["--rollout-urls http://a:1 http://b:1", "--rollout-engine transformers"],
    ),
    (
        {"rollout_engine": "vllm-server", "rollout_launch": 2, "rollout_urls": ("http://a:1",)},
        ["--rollout-launch 2", "--rollout-urls http://a:1", "leave one"],
    ),
    (
        {"rollout_engine": "vllm-server", "rollout_launch": 1, "rollout_transfer_dir": "absent"},
        ["--rollout-transfer-dir absent", "no folder"],
    ),
    (
        {"rollout_engine": "vllm-server", "rollout_launch": 1, "rollout_engine_sleep": True},
        ["--rollout-engine-sleep", "vllm-server", "leave it out"],
    ),
    (
        {"rollout_launch": -1, "rollout_engine": "vllm-server"},
        ["--rollout-launch -1", "at least 0"],
    ),
    ({"rollout_lag": 2}, ["--rollout-lag 2", "at least 0 and at most 1", "one step old"]),
    ({"tis_cap": 3.0}, ["--tis-cap 3.0", "no effect", "--rollout-correction recompute"]),
    ({"grpo_eps": 1e-4}, ["--grpo-eps 0.0001", "no effect", "--advantage-estimator gae"]),
    ({"updates_per_rollout": 5000}, ["--updates-per-rollout 5000", "4096 responses"]),
    ({"critic_updates_per_rollout": 5000}, ["--critic-updates-per-rollout 5000", "lower it"]),
    ({"min_lr": 1.5e-6}, ["--min-lr 1.5e-06", "at most --lr 1e-06"]),
    ({"lr_decay_iters": 10}, ["--lr-decay-iters 10", "constant", "cosine"]),
    (
        {"lr_decay_iters": 10, "lr_decay_style": "linear", "lr_warmup_iters": 10},
        ["--lr-decay-iters 10", "above --lr-warmup-iters 10"],
    ),
    (
        {"num_layers_per_virtual_pipeline_stage": 2},
        ["--num-layers-per-virtual-pipeline-stage 2", "--pipeline-model-parallel-size is 1"],
    ),
    ({"sequence_parallel": True}, ["--sequence-parallel", "tensor-model-parallel-size", "above 1"]),
    ({"recompute_num_layers": 2}, ["--recompute-num-layers 2", "no effect", "none", "full"]),
    ({"global_batch_size": 100}, ["--global-batch-size 100", "4096", "divisor of 4096"]),
    ({"critic_global_batch_size": 3}, ["--critic-global-batch-size 3", "divisor of 4096"]),
    ({"max_tokens_per_micro_batch": 8191}, ["--max-tokens-per-micro-batch 8191", "8192", "raise"]),
    ({"eval_temperature": 0.0}, ["--eval-temperature 0", "--n-samples-per-eval-prompt 32", "1"]),
    ({"instruction": "Solve it."}, ["--instruction 'Solve it.'", "{problem}"]),
    ({"hf_checkpoint": ""}, ["--hf-checkpoint is missing", "folder"]),
    ({"hf_checkpoint": "absent"}, ["--hf-checkpoint absent", "no folder"]),
    ({"critic_hf_checkpoint": "absent"}, ["--critic-hf-checkpoint absent", "no folder"]),
    ({"prompt_data": ""}, ["--prompt-data is missing", "jsonl"]),
    ({"decontaminate": True}, ["--decontaminate needs", "--eval-prompt-data"]),
    ({"prompt_data": "absent.jsonl@[0:5]"}, ["--prompt-data absent.jsonl", "no file"]),
    ({"prompt_data": "q.jsonl@[0:5"}, ["--prompt-data q.jsonl@[0:5", "FILE@[START:STOP]"]),
    (
        {"eval_prompt_data": ("aime=absent.jsonl",)},
        ["--eval-prompt-data", "absent.jsonl is no file"],
    ),
    ({"eval_prompt_data": ("q.jsonl@[5]",)}, ["--eval-prompt-data q.jsonl@[5]", "START:STOP"]),
    ({"run_dir": ""}, ["--run-dir is missing", "folder"]),
    ({"load": "absent"}, ["--load absent", "no folder"]),
]


@pytest.mark.parametrize(("fields", "parts"), _CONTRADICTIONS, ids=lambda value: str(value)[:50])
def test_each_contradiction_is_one_problem(
    make_config: MakeConfig, fields: dict[str, object], parts: list[str]
) -> None:
    (problem,) = find_problems(make_config(**fields))
    position = 0
    for part in parts:
        assert part in problem[position:], f"{part!r} not found, in order, in {problem!r}"
        position = problem.index(part, position) + len(part)


@pytest.mark.parametrize(
    ("actor", "critic"), [(None, None), (8, None), (None, 8), (8, 8), (4, 12), (8, 12), (24, 1)]
)
def test_batch_sizes_that_fit(
    make_config: MakeConfig, actor: int | None, critic: int | None
) -> None:
    """Also without sizes, and sizes of which neither divides the other."""
    rollout = {"rollout_batch_size": 6, "n_samples_per_prompt": 4}
    sizes = {"global_batch_size": actor, "critic_global_batch_size": critic}
    assert find_problems(make_config(**rollout, **sizes)) == []


def test_all_contradictions_are_reported_at_once() -> None:
    config = Config()
    problems = find_problems(config)
    assert [problem.split(" is ")[0] for problem in problems] == [
        "--hf-checkpoint",
        "--prompt-data",
        "--run-dir",
    ]
    with pytest.raises(ConfigError) as caught:
        validate_config(config)
    assert list(caught.value.problems) == problems
    assert str(caught.value).splitlines() == problems


def test_a_plan_needs_no_data_run_folder_or_weights(
    make_config: MakeConfig, qwen_7b_folder: Path
) -> None:
    fields: dict[str, object] = {"prompt_data": "", "run_dir": "", "load": "absent"}
    config = make_config(hf_checkpoint=str(qwen_7b_folder), **fields)
    assert find_problems(config, "plan") == []
    (problem,) = find_problems(make_config(hf_checkpoint=str(qwen_7b_folder)), "train")
    assert problem.startswith(f"--hf-checkpoint {qwen_7b_folder} has a config.json but no")


def test_folders_that_are_no_folders(make_config: MakeConfig, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    problems = find_problems(
        make_config(run_dir=str(tmp_path / "file"), hf_checkpoint=str(tmp_path / "empty"))
    )
    assert len(problems) == 2
    assert "has no config.json" in problems[0]
    assert "is a file; give a folder" in problems[1]


@pytest.mark.parametrize("rows", ["@[0:5]", "@[:5]", "@[5:]", "@[-5:]", "@[:]"])
def test_slices_of_question_files(make_config: MakeConfig, rows: str) -> None:
    """Training and evaluation questions alike."""
    file = make_config().data.prompt_data + rows
    assert find_problems(make_config(prompt_data=file, eval_prompt_data=(file, f"x={file}"))) == []


@pytest.mark.parametrize("name", BOUNDS)
def test_every_bound_is_enforced_on_both_sides(make_config: MakeConfig, name: str) -> None:
    bound, default = BOUNDS[name], field_specs()[name].default

    def complains(value: float) -> bool:
        fields: object = (value,) * len(default) if isinstance(default, tuple) else value
        problems = find_problems(make_config(**{name: fields}))
        return any(problem.startswith(f"{flag_name(name)} ") for problem in problems)

    assert complains(float("nan"))
    if bound.low > -1e9:
        assert complains(bound.low - 1)
        assert bound.holds(bound.low) != bound.low_open
    if bound.high < 1e9:
        assert complains(bound.high + 1)
        assert bound.holds(bound.high) != bound.high_open


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (Bound(0, 1, low_open=True), "above 0 and at most 1"),
        (Bound(1), "at least 1"),
        (Bound(high=0.5, high_open=True), "below 0.5"),
        (Bound(0, 2**32 - 1), "at least 0 and at most 4294967295"),
        (Bound(1, 1), "exactly 1"),
        (Bound(), "finite"),
    ],
)
def test_bound_words(bound: Bound, words: str) -> None:
    assert bound.words() == words


@pytest.mark.parametrize("name", ["grpo", "dr_grpo", "rloo", "gspo"])
def test_settings_of_a_critic_that_is_not_there_are_refused(
    name: str, make_config: MakeConfig
) -> None:
    preset = {"algorithm": name, **preset_values(name)}
    assert find_problems(make_config(**preset)) == []
    fields: dict[str, object] = {
        "critic_lr": 1e-3,
        "critic_warmup_iters": 2,
        "critic_global_batch_size": 16,
        "critic_epochs": 2,
        "value_clip": 0.2,
        "ws_lambda_p": 5.0,
    }
    for field, value in fields.items():
        (problem,) = find_problems(make_config(**{**preset, field: value}))
        assert problem.startswith(f"{flag_name(field)} {value} has no effect: --algorithm {name}")


def test_a_curriculum_weight_needs_no_critic(make_config: MakeConfig) -> None:
    config = make_config(**{"algorithm": "grpo", **preset_values("grpo"), "use_w_d": True})
    assert find_problems(config) == []
