# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""``megacurl plan``: the weight plan of a layout, from a config.json alone."""

from __future__ import annotations

from megacurl.config.errors import about, raise_problems
from megacurl.config.layout import virtual_stages
from megacurl.models.family import load_shape
from megacurl.sync.engine_layout import EngineLayout, engine_problems
from megacurl.sync.plan import SyncPlan, plan_sync
from megacurl.sync.plan_report import format_plan
from megacurl.sync.settings import PlanArguments
from megacurl.sync.trainer_layout import TrainerLayout


def main(arguments: PlanArguments) -> str:
    """The report; ``arguments`` were checked by ``check_plan_arguments``.

    Raises ConfigError for a model of another family and for engines that cannot be cut so.
    """
    itemsize = 2 if arguments.bf16 else 4
    return format_plan(make_plan(arguments, itemsize), itemsize, arguments.sync_bucket_mb)


def make_plan(arguments: PlanArguments, itemsize: int) -> SyncPlan:
    """The plan that the arguments describe; see ``main``."""
    with about("--hf-checkpoint"):
        family, shape = load_shape(arguments.hf_checkpoint)
    tp, pp = arguments.tensor_model_parallel_size, arguments.pipeline_model_parallel_size
    raise_problems(engine_problems(shape, arguments.rollout_tensor_parallel_size))
    weight_map = family.weight_map(shape, arguments.make_vocab_size_divisible_by)
    return plan_sync(
        weight_map.parameters(),
        TrainerLayout(
            tp=tp,
            dp=arguments.trainer_ranks // (tp * pp),
            pp=pp,
            num_layers=shape.num_layers,
            chunks=virtual_stages(shape.num_layers, arguments.parallel),
        ),
        EngineLayout(arguments.rollout_tensor_parallel_size, arguments.rollout_engines),
        bucket_elements=(arguments.sync_bucket_mb << 20) // itemsize,
    )
