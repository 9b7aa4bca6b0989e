# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The policy on the last stage: hidden states out, so that logits never exist as a whole."""

from __future__ import annotations

from typing import Any

from megatron.core.models.gpt import GPTModel
from megatron.core.tensor_parallel import (
    copy_to_tensor_model_parallel_region,
    gather_from_sequence_parallel_region,
)
from torch import Tensor


class PolicyModel(GPTModel):
    """A GPTModel whose last stage returns final hidden states [1, T, h] instead of logits.

    ``head_weight`` then gives the rank's rows of the output layer to
    ``megatron.log_prob.vocab_parallel_log_prob``. Every rank's part of the vocabulary contributes
    to the gradient of the hidden states, which is summed over the tensor parallel ranks here.
    """

    def _postprocess(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not self.post_process:
            return hidden_states
        if self.config.sequence_parallel:
            hidden_states = gather_from_sequence_parallel_region(
                hidden_states, tensor_parallel_output_grad=True
            )
        else:
            hidden_states = copy_to_tensor_model_parallel_region(hidden_states)
        return hidden_states.transpose(0, 1).contiguous()

    @property
    def head_weight(self) -> Tensor:
        """[V_padded / TP, h]: the output layer's rows of this rank; last stage only."""
        if self.share_embeddings_and_output_weights:
            tied: Tensor = self.shared_embedding_or_output_weight()
            return tied
        untied: Tensor = self.output_layer.weight
        return untied
