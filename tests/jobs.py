# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What the tests ask every rank of a gloo world to do."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from torch import Tensor

from megacurl.config.load import parse_train, resolve_defaults
from megacurl.config.plan import plan_run
from megacurl.config.schema import Config
from megacurl.diagnostics import diagnose
from megacurl.experience import make_experience
from megacurl.megatron import groups
from megacurl.megatron.actor import Actor
from megacurl.megatron.critic import Critic
from megacurl.megatron.groups import Grid
from megacurl.megatron.packing import PackedBatch, pack
from megacurl.megatron.pipeline import forward_only
from megacurl.megatron.shard import Shard
from megacurl.models.builder import build_model
from megacurl.rollout.registry import create_engine
from megacurl.rollout.types import Request, SamplingSpec
from megacurl.sync.engine_sync import WeightSync
from megacurl.sync.export import export_hf
from megacurl.sync.gather import gather_hf_weights, plan_gather
from megacurl.trajectory import Trajectory


def settings(folder: Path | str, preset: str = "cvpo", **flat: Any) -> Config:
    """A preset with flat field overrides."""
    config = resolve_defaults(algorithm=preset)
    sections = {}
    for section in dataclasses.fields(config):
        part = getattr(config, section.name)
        names = {f.name for f in dataclasses.fields(part)}
        chosen = {k: v for k, v in flat.items() if k in names}
        sections[section.name] = dataclasses.replace(part, **chosen)
    config = dataclasses.replace(config, **sections)
    return dataclasses.replace(
        config, model=dataclasses.replace(config.model, hf_checkpoint=str(folder))
    )


_LAYOUTS: dict[tuple[int, int], dict[str, Any]] = {}
"""Megatron's groups of the layouts seen so far in this process, by (TP, PP)."""


def enter(config: Config) -> Grid:
    """Megatron's groups for the layout of ``config`` in the world that exists.

    Groups are kept and put back: every gloo group has threads, which Megatron's
    ``destroy_model_parallel`` does not end.
    """
    parallel = config.parallel
    key = parallel.tensor_model_parallel_size, parallel.pipeline_model_parallel_size
    names = [n for n in vars(parallel_state) if n.startswith("_") and not n.startswith("__")]
    if key in _LAYOUTS:
        vars(parallel_state).update(_LAYOUTS[key])
        return groups.current_grid()
    if parallel_state.is_initialized():
        parallel_state.destroy_model_parallel()
    grid = groups.initialize(parallel, config.training.seed)
    _LAYOUTS[key] = {n: vars(parallel_state)[n] for n in names}
    return grid


def logits(config: Config, sequences: list[list[int]]) -> list[Tensor] | None:
    """Full logits of every sequence, from one packed forward; on the last stage's first TP rank."""
    grid = enter(config)
    network = build_model("actor", config.model.hf_checkpoint, config.model, config.parallel)
    multiple = grid.tp_size if config.parallel.sequence_parallel else 1
    batch = pack(
        [s[:1] for s in sequences],
        [s[1:] for s in sequences],
        device=grid.device,
        multiple=multiple,
    )

    def every_logit(hidden: Tensor, batch: PackedBatch) -> Tensor:
        local = hidden[0] @ network.head_weight.t()
        parts = [torch.empty_like(local) for _ in range(grid.tp_size)]
        dist.all_gather(parts, local, group=parallel_state.get_tensor_model_parallel_group())
        return torch.cat(parts, dim=1)[:, : network.shape.vocab_size]

    (result,) = forward_only(network.chunks, [batch], every_logit) or (None,)
    if result is None or grid.tp_rank:
        return None
    return list(result[: sum(map(len, sequences))].split([len(s) for s in sequences]))


def round_trip(config: Config, target: Path) -> None:
    """HF -> Megatron -> HF."""
    grid = enter(config)
    network = build_model("actor", config.model.hf_checkpoint, config.model, config.parallel)
    export_hf(network, config.model.hf_checkpoint, target, grid)


def _whole(network: Any, grid: Grid, what: str) -> dict[str, Tensor]:
    """Weights or gradients of the trunk by HF name, and of the output layer by its own."""
    plan = plan_gather(network, grid, 1 << 20)

    def read(parameter: torch.nn.Parameter) -> Tensor:
        tensor: Tensor = parameter.main_grad if what == "grad" else parameter.detach()
        return tensor.clone()

    whole = {
        name: tensor
        for bucket in gather_hf_weights(network, plan, grid, read)
        for name, tensor in bucket
    }
    return whole


def _value_head(network: Any, grid: Grid, what: str) -> Tensor:
    local = torch.zeros(1, network.config.hidden_size)
    if grid.is_last_stage:
        weight = network.output_layer.weight
        local = (weight.main_grad if what == "grad" else weight.detach()).clone()
    return grid.sum_over_owners(local) / grid.dp_size


def train_once(
    config: Config,
    trajectories: list[Trajectory],
    difficulty: dict[str, float],
    update_measures: bool = False,
) -> dict[str, Any]:
    """Values, log-probs, experience and one update of both models; everything comparable.

    ``update_measures``: the update is not given the old log-probs; those returned are its own.
    """
    grid = enter(config)
    folder = config.model.hf_checkpoint
    actor = Actor(
        build_model("actor", folder, config.model, config.parallel), config, grid, total_steps=10
    )
    critic = None
    if config.algorithm.use_critic:
        network = build_model("critic", folder, config.model, config.parallel)
        critic = Critic(network, config, grid, total_steps=10)
        _give_head_something(critic, grid)
    shard = Shard(trajectories, config, grid, step=0)
    values = critic.values(shard) if critic else None
    old = actor.log_probs(shard)
    experience = make_experience(shard, values, difficulty, config, grid, warming_up=False, old=old)
    diagnosis = diagnose(shard, values, old, experience, config, grid)
    before = _whole(actor.network, grid, "weight")
    critic_metrics = critic.update(shard, values, experience.returns) if critic else {}
    updated = actor.update(shard, None if update_measures else old, experience.advantages)
    after = _whole(actor.network, grid, "weight")
    result: dict[str, Any] = {
        "metrics": experience.metrics | diagnosis | critic_metrics | updated.metrics,
        "update": {name: after[name] - before[name] for name in after},
        "log_probs": _by_trajectory(shard, updated.old.log_probs, grid),
        "entropy": _by_trajectory(shard, updated.old.entropy, grid),
        "advantages": _by_trajectory(shard, experience.advantages, grid),
    }
    if values is not None:
        result["values"] = _by_trajectory(shard, values.values, grid)
    if not config.parallel.use_distributed_optimizer:  # otherwise a rank holds a part only
        result["grad"] = _whole(actor.network, grid, "grad")
        if critic:
            result["critic_head_grad"] = _value_head(critic.network, grid, "grad")
    return result


def _give_head_something(critic: Critic, grid: Grid) -> None:
    """A value head that is not zero, the same in every layout, seen by the optimizer too."""
    if grid.is_last_stage:
        weight = critic.network.output_layer.weight
        with torch.no_grad():
            weight.copy_(torch.linspace(-0.5, 0.5, weight.numel()).view_as(weight))
    critic.trainable.optimizer.reload_model_params()


def _by_trajectory(shard: Shard, tokens: Tensor, grid: Grid) -> Tensor:
    """[N] sums over the tokens of each trajectory, weighted by position, on every rank."""
    sums = torch.zeros(len(shard.order), dtype=torch.float64)
    if grid.is_last_stage:
        bounds = shard.cu_seqlens.tolist()
        for i, (a, b) in enumerate(itertools.pairwise(bounds)):
            sums[i] = (tokens[a:b].double() * torch.arange(1, b - a + 1)).sum()
    return shard.spread_to_all(sums, grid)


def sync_after_update(
    config: Config, trajectories: list[Trajectory], target: Path, engine_name: str = "transformers"
) -> dict[str, Any]:
    """Train once, sync into an engine, export; what that engine and a fresh one generate."""
    grid = enter(config)
    folder = config.model.hf_checkpoint
    network = build_model("actor", folder, config.model, config.parallel)
    dtype = "bfloat16" if config.model.bf16 else "float32"
    engine = create_engine(engine_name, model=folder, load_weights=False, dtype=dtype)
    engine.start()
    actor = Actor(network, config, grid, total_steps=10)
    sync = WeightSync(network, engine, grid, bucket_bytes=1 << 14)
    digests = [sync(0)]
    shard = Shard(trajectories, config, grid, step=0)
    old = actor.log_probs(shard)
    actor.update(
        shard, old, torch.randn(len(shard.mask), generator=torch.Generator().manual_seed(1))
    )
    digests.append(sync(1))
    export_hf(network, folder, target, grid)
    requests = [
        Request(
            str(i),
            (1 + i, 5, 9),
            SamplingSpec(max_tokens=12, temperature=0.0, ignore_eos=True),
            (0,),
        )
        for i in range(4)
    ]
    ours = [(s.token_ids, s.log_probs) for s in engine.generate(requests)]
    fresh_engine = create_engine(engine_name, model=target, dtype=dtype)
    fresh_engine.start()
    fresh = [(s.token_ids, s.log_probs) for s in fresh_engine.generate(requests)]
    found = {
        "digests": digests,
        "version": engine.weight_version,
        "ours": ours,
        "fresh": fresh,
        "fresh_digest": fresh_engine.digest(),
    }
    engine.shutdown()
    fresh_engine.shutdown()
    return found


def vllm_beside_groups(folder: Path) -> dict[str, Any]:
    """Start, use, end and restart a vLLM engine; sums over the trainer's ranks in between."""
    rank = dist.get_rank()
    group = dist.new_group(list(range(dist.get_world_size())))
    found: dict[str, Any] = {"sums": []}

    def check_groups() -> None:
        for over in (group, None):
            total = torch.tensor([rank + 1.0])
            dist.all_reduce(total, group=over)
            found["sums"].append(total.item())

    sampling = SamplingSpec(8 + 8 * rank, ignore_eos=True)
    requests = [Request("q", (5, 6 + rank), sampling, (1, 2))]
    for name in ("tokens", "again"):
        engine = create_engine("vllm", model=folder, kv_cache_mb=4)
        engine.start()
        found[name] = [s.token_ids for s in engine.generate(requests)]
        engine.shutdown()
        check_groups()
    dist.destroy_process_group(group)
    found["lengths"] = [len(tokens) for tokens in found["tokens"]]
    return found


def run_training(config: Config) -> None:
    """The whole of ``megacurl train`` in the world that exists."""
    from megacurl.run import Run
    from megacurl.train import train

    run = Run(config, enter(config))
    try:
        train(run)
    finally:
        run.close()


def train_command(argv: list[str]) -> None:
    """``megacurl train ARGV`` in the world that exists: parsed, checked against it, and run."""
    config = parse_train(argv).settings
    plan_run(config, dist.get_world_size())
    run_training(config)


def score_export(config: Config, folder: Path) -> list[tuple[int, ...]]:
    """Correct counts of every eval set's questions, by an engine that starts from ``folder``."""
    from transformers import AutoTokenizer

    from megacurl.evaluate import Evaluator
    from megacurl.generation import Generator
    from megacurl.rewards.registry import get_verifier

    grid = enter(config)
    engine = create_engine("transformers", model=folder)
    engine.start()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    verifier = get_verifier(config.data.verifier)
    generator = Generator(engine, tokenizer, verifier, grid, config.training.seed)
    results = Evaluator(config, tokenizer)(generator, step=0, version=0)
    return [result.num_correct for result in results]
