# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A layout as text for ``--dry-run``; as short for 64 ranks as for 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from megacurl.config.batches import critic_warmup
from megacurl.config.layout import Layout, ModelPlacement, UpdatePlan
from megacurl.config.memory import StateBytes, peak_bytes, stage_bytes
from megacurl.config.schema import Config

_MAX_LISTED_RANKS = 16


def format_layout(layout: Layout, config: Config) -> str:
    """Return ranks, groups, models, stages, memory and batch arithmetic as aligned text."""
    blocks = [
        _grid(layout),
        _models(layout),
        _stages(layout),
        _memory(layout, config),
        _batches(layout, config),
    ]
    return "\n\n".join("\n".join(block) for block in blocks)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns, two blanks apart: the first to the left, the others to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def format_ranks(ranks: Sequence[int]) -> str:
    """Write a rank group: ``[0 1]``, ``[0-7]``, or ``[0 4 .. 28]`` for a stride."""
    if len(ranks) <= 2:
        return "[" + " ".join(map(str, ranks)) + "]"
    if ranks[1] - ranks[0] == 1:
        return f"[{ranks[0]}-{ranks[-1]}]"
    if len(ranks) <= 4:
        return "[" + " ".join(map(str, ranks)) + "]"
    return f"[{ranks[0]} {ranks[1]} .. {ranks[-1]}]"


def _grid(layout: Layout) -> Iterator[str]:
    yield (
        f"Layout: {layout.world_size} ranks = tensor {layout.tp} x data {layout.dp} x "
        f"pipeline {layout.pp}"
    )
    rows = []
    for name, groups in (
        ("tensor", layout.tp_groups),
        ("data", layout.dp_groups),
        ("pipeline", layout.pp_groups),
    ):
        shown = [format_ranks(group) for group in groups]
        if len(shown) > 4:
            shown = [*shown[:2], "...", shown[-1]]
        rows.append((f"  {name} groups", f"{len(groups)} of {len(groups[0])}", " ".join(shown)))
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    for name, count, shown_groups in rows:
        yield f"{name.ljust(first)}  {count.rjust(second)}  {shown_groups}"
    if layout.world_size <= _MAX_LISTED_RANKS:
        yield ""
        coordinates = [layout.coordinates(rank) for rank in range(layout.world_size)]
        yield from format_table(
            ("  rank", "tensor", "data", "pipeline"),
            [
                (f"  {at.rank}", str(at.tp_rank), str(at.dp_rank), str(at.pp_rank))
                for at in coordinates
            ],
        )


def _models(layout: Layout) -> Iterator[str]:
    if layout.critic is None:
        yield from _model("Model (actor, no critic)", layout.actor)
    elif layout.critic.shape == layout.actor.shape:
        yield from _model("Model (actor, critic)", layout.actor)
    else:
        yield from _model("Actor", layout.actor)
        yield from _model("Critic", layout.critic)


def _model(title: str, placement: ModelPlacement) -> Iterator[str]:
    shape = placement.shape
    tied = "tied" if shape.tie_word_embeddings else "untied"
    yield (
        f"{title}: {shape.model_type}, {shape.total_parameters(placement.role):,} parameters, "
        f"{shape.num_layers} layers, hidden size {shape.hidden_size}, {tied} embeddings"
    )
    yield from format_table(
        ("  split over tensor ranks", "all", "a rank"),
        [
            ("  attention heads", str(shape.num_attention_heads), str(placement.heads_per_rank)),
            (
                "  key/value heads",
                str(shape.num_query_groups),
                str(placement.query_groups_per_rank),
            ),
            ("  MLP width", str(shape.ffn_hidden_size), str(placement.ffn_per_rank)),
            (
                f"  vocabulary ({shape.vocab_size} padded)",
                str(placement.padded_vocab_size),
                str(placement.vocab_per_rank),
            ),
        ],
    )


def _stages(layout: Layout) -> Iterator[str]:
    per_stage = layout.tp * layout.dp
    models = {"actor": layout.actor} | ({"critic": layout.critic} if layout.critic else {})
    rows = []
    for stage in range(layout.pp):
        first, last = stage == 0, stage == layout.pp - 1
        ends = ["embedding"] * first + ["norm and head"] * last
        rows.append(
            (
                f"  {stage}",
                format_ranks(range(stage * per_stage, (stage + 1) * per_stage)),
                *(" ".join(map(_span, model.stage_layers(stage))) for model in models.values()),
                ", ".join(ends) or "-",
                *(f"{model.stage_parameters(stage):,}" for model in models.values()),
            )
        )
    yield "Pipeline stages (parameters are those of one rank)"
    layers = [f"{name} layers" for name in models]
    yield from format_table(("  stage", "ranks", *layers, "also", *models), rows)


def _span(numbers: range) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _memory(layout: Layout, config: Config) -> Iterator[str]:
    rows = []
    peaks = []
    offload = config.parallel.offload
    for stages, models in _stages_alike(layout, config):
        for model, size in models.items():
            cells = (size.weights, size.gradients, size.optimizer, size.total)
            rows.append((f"  {stages}", model, *map(format_size, cells)))
        peaks.append(peak_bytes(models.values(), offload))
    precision = "bf16 weights" if config.model.bf16 else "fp32 weights"
    yield f"Memory of a rank ({precision}; activations, rollout engine and buffers come on top)"
    yield from format_table(
        ("  stage", "model", "weights", "gradients", "optimizer", "together"), rows
    )
    largest = f"  largest rank: {format_size(max(peak.device for peak in peaks))}"
    if offload != "none":
        host = format_size(max(peak.host for peak in peaks))
        largest += f" at a time with --offload {offload}, and {host} of host memory"
    yield largest


def _stages_alike(layout: Layout, config: Config) -> Iterator[tuple[str, dict[str, StateBytes]]]:
    """Yield runs of stages that need the same bytes, as ``("1-6", bytes per model)``."""
    sizes = [stage_bytes(layout, config, stage) for stage in range(layout.pp)]
    start = 0
    for stage in range(1, layout.pp + 1):
        if stage == layout.pp or sizes[stage] != sizes[start]:
            yield _span(range(start, stage)), sizes[start]
            start = stage


def format_size(count: float) -> str:
    """Write a number of bytes: ``14.19 GiB``; none is a dash."""
    if count == 0:
        return "-"
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count / 2**10:.2f} KiB"


def _batches(layout: Layout, config: Config) -> Iterator[str]:
    training, rollout = config.training, config.rollout
    yield (
        f"Batches: {training.rollout_batch_size} prompts x {training.n_samples_per_prompt} "
        f"responses = {layout.sequences_per_rollout} responses a rollout, each at most "
        f"{rollout.rollout_max_prompt_len} + {rollout.rollout_max_response_len} tokens"
    )
    plans = {"actor": layout.actor_updates}
    if layout.critic_updates is not None:
        plans["critic"] = layout.critic_updates
    yield from format_table(
        ("  model", "epochs", "responses a step", "a data rank", "optimizer steps a rollout"),
        [_updates(name, plan) for name, plan in plans.items()],
    )
    yield _steps(layout, config)


def _steps(layout: Layout, config: Config) -> str:
    rollouts, warmup = config.training.train_iters, critic_warmup(config)
    if layout.critic_updates is None:
        steps = rollouts * layout.actor_updates.steps_per_rollout
        return f"  {rollouts} rollouts: {steps} actor optimizer steps"
    at_least = "at least " if config.algorithm.critic_warmup_stop == "criterion" else ""
    actor_steps = (rollouts - warmup) * layout.actor_updates.steps_per_rollout
    critic_steps = rollouts * layout.critic_updates.steps_per_rollout
    return (
        f"  {rollouts} rollouts, the first {warmup} for the critic alone: "
        f"{at_least}{actor_steps} actor and {critic_steps} critic optimizer steps"
    )


def _updates(model: str, plan: UpdatePlan) -> tuple[str, ...]:
    return (
        f"  {model}",
        str(plan.epochs),
        str(plan.global_batch_size),
        str(plan.sequences_per_dp_rank),
        str(plan.steps_per_rollout),
    )
