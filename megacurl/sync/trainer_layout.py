# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Which trainer ranks hold a parameter of the whole model."""

from __future__ import annotations

from dataclasses import dataclass

from megacurl.config.layout import global_rank, stage_layers
from megacurl.models.weight_map import Parameter

Cell = tuple[int, int]
"""(pipeline stage, tensor parallel rank): its data parallel ranks hold the same."""


@dataclass(frozen=True)
class TrainerLayout:
    """A grid of tensor x data x pipeline parallel ranks; ``chunks`` of layers on a stage.

    Expert parallelism would add a coordinate here, and experts to the weight map; neither exists.
    """

    tp: int
    dp: int
    pp: int
    num_layers: int
    chunks: int = 1

    @property
    def world_size(self) -> int:
        return self.tp * self.dp * self.pp

    def cell_ranks(self, cell: Cell) -> list[int]:
        """Global ranks of a cell, by their data parallel rank."""
        stage, tp_rank = cell
        return [global_rank(tp_rank, d, stage, tp=self.tp, dp=self.dp) for d in range(self.dp)]

    def stages(self, parameter: Parameter) -> tuple[int, ...]:
        """The pipeline stages that hold it: one, or first and last for a tied embedding."""
        last = self.pp - 1
        if parameter.tied:
            return (0,) if last == 0 else (0, last)
        if parameter.layer is not None:
            return (self._stage_of_layer(parameter.layer),)
        return (0,) if parameter.megatron.startswith("embedding.") else (last,)

    def _stage_of_layer(self, layer: int) -> int:
        for stage in range(self.pp):
            chunks = stage_layers(self.num_layers, self.pp, self.chunks, stage)
            if any(layer in chunk for chunk in chunks):
                return stage
        raise ValueError(f"layer {layer} is on none of {self.pp} stages of {self.num_layers}")
