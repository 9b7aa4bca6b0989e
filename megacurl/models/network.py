# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A rank's part of a model: one chunk of layers, or several when the pipeline is interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from megatron.core.transformer.transformer_layer import get_transformer_layer_offset
from torch import Tensor

from megacurl.megatron.offload import Offloadable
from megacurl.models.shape import ModelShape
from megacurl.models.weight_map import WeightMap


class Network:
    """Megatron modules of one rank, in the order in which a micro-batch passes through them.

    With pipeline stage p of P and chunks 0 … V-1, chunk v holds the layers of virtual stage
    v P + p: the embedding is in the first chunk of the first stage, the output layer in the last
    chunk of the last stage.
    """

    def __init__(
        self,
        chunks: Sequence[Any],
        shape: ModelShape,
        weight_map: WeightMap,
        *,
        offload: bool = False,
    ) -> None:
        """
        Args:
            chunks: GPTModels; each knows its ``vp_stage`` (None when it is the only one).
            shape: of the whole model.
            weight_map: of the model's family.
            offload: whether ``weights`` leave the device while nobody uses them.
        """
        self.chunks = tuple(chunks)
        self.shape, self.weight_map = shape, weight_map
        self.weights = Offloadable(
            lambda: (p.detach() for chunk in self.chunks for p in chunk.parameters()),
            enabled=offload,
        )

    @property
    def config(self) -> Any:
        """Megatron's TransformerConfig, the same for every chunk."""
        return self.chunks[0].config

    @property
    def head_weight(self) -> Tensor:
        """Rows of a policy's output layer; see ``PolicyModel``. Last stage only."""
        weight: Tensor = self.chunks[-1].head_weight
        return weight

    @property
    def output_layer(self) -> Any:
        """Last stage only."""
        return self.chunks[-1].output_layer

    def local_parameters(
        self, *, skip_head: bool = False
    ) -> Iterator[tuple[str, torch.nn.Parameter, int]]:
        """(name in its chunk, parameter, number of the chunk's first layer) on this rank.

        ``skip_head`` leaves out ``output_layer``: a critic's value head is in no weight map.
        """
        for chunk in self.chunks:
            first_layer = get_transformer_layer_offset(chunk.config, chunk.vp_stage)
            for name, parameter in chunk.named_parameters():
                if not (skip_head and name.startswith("output_layer.")):
                    yield name, parameter, first_layer

    def sharded_state_dict(self) -> dict[str, Any]:
        """For dist_checkpointing. Tensors carry their place in the whole model, so another layout
        can load them."""
        return {str(i): chunk.sharded_state_dict() for i, chunk in enumerate(self.chunks)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what dist_checkpointing loaded into ``sharded_state_dict``."""
        for i, chunk in enumerate(self.chunks):
            chunk.load_state_dict(state[str(i)])
