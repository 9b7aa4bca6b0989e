# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""One builder for actor, critic and reference: this rank's part of a model, weights loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.models.gpt import GPTModel
from megatron.core.transformer import TransformerConfig

from megacurl.config.layout import virtual_stages
from megacurl.config.schema import ModelConfig, ParallelConfig
from megacurl.megatron import cpu
from megacurl.megatron.pipeline import finalize_sum
from megacurl.megatron.spec import block_spec, choose_transformer_impl
from megacurl.models.family import load_shape
from megacurl.models.load_hf import load_hf_weights
from megacurl.models.network import Network
from megacurl.models.policy import PolicyModel
from megacurl.models.shape import ModelShape
from megacurl.models.value_head import ValueHead

Role = Literal["actor", "critic", "reference"]


@cpu.on_megatron_device
def build_model(
    role: Role, hf_folder: str | Path, model: ModelConfig, parallel: ParallelConfig
) -> Network:
    """This rank's part of the model in ``hf_folder``, in train mode, on the rank's device.

    actor, reference: ``PolicyModel`` chunks. critic: GPTModels with a ``ValueHead``, their trunk
    from a policy's folder; what is tied in a policy is not in the critic, which has no logits.
    The layout was checked by ``config.plan.plan_run``.
    """
    family, shape = load_shape(hf_folder)
    config = transformer_config(shape, model, parallel)
    count = config.virtual_pipeline_model_parallel_size
    stages = [None] if count is None else range(count)
    chunks = [_build_chunk(role, shape, config, model, parallel, stage) for stage in stages]
    weight_map = family.weight_map(shape, model.make_vocab_size_divisible_by)
    network = Network(chunks, shape, weight_map, offload=parallel.offload == "all")
    mark_partitions(network, skip_head=role == "critic")
    load_hf_weights(network, hf_folder, skip_head=role == "critic")
    if role == "reference":  # the others' weights move once more, into buffers for their training
        network.weights.move_out()
    return network


def _build_chunk(
    role: Role,
    shape: ModelShape,
    config: TransformerConfig,
    model: ModelConfig,
    parallel: ParallelConfig,
    vp_stage: int | None,
) -> Any:
    """The layers of one virtual stage, weights not set; ``vp_stage`` None: of the whole stage."""
    kind = GPTModel if role == "critic" else PolicyModel
    first = parallel_state.is_pipeline_first_stage() and not vp_stage
    last = parallel_state.is_pipeline_last_stage() and vp_stage in (
        None,
        (config.virtual_pipeline_model_parallel_size or 1) - 1,
    )
    impl = choose_transformer_impl(model.transformer_impl)
    chunk = kind(
        config=config,
        transformer_layer_spec=block_spec(config, impl, vp_stage),
        vocab_size=shape.padded_vocab_size(
            parallel.tensor_model_parallel_size, model.make_vocab_size_divisible_by
        ),
        max_sequence_length=shape.max_position_embeddings,
        pre_process=first,
        post_process=last,
        share_embeddings_and_output_weights=shape.tied and role != "critic",
        position_embedding_type="rope",
        rotary_base=shape.rope_theta,
        rope_scaling=shape.rope_scaling is not None,
        rope_scaling_factor=shape.rope_scaling.factor if shape.rope_scaling else 1.0,
        parallel_output=True,
        vp_stage=vp_stage,
    )
    device = torch.device(torch.cuda.current_device())
    chunk.to(device=device, dtype=config.params_dtype)
    if role == "critic" and last:
        chunk.output_layer = ValueHead(config, model.critic_head_init_std, device)
    return chunk


def mark_partitions(network: Network, *, skip_head: bool) -> None:
    """Tell Megatron which parameters are parts of a larger one.

    It sets these attributes while it draws initial weights, which we skip. Without them it takes a
    part for a copy, counts only the first tensor parallel rank's, and reports and clips by a
    gradient norm that is too small.
    """
    for name, parameter, first_layer in network.local_parameters(skip_head=skip_head):
        dim = network.weight_map.find(name, first_layer).cut.partition_dim
        attributes = {"tensor_model_parallel": dim is not None, "partition_stride": 1}
        attributes["partition_dim"] = -1 if dim is None else dim
        for attribute, value in attributes.items():
            setattr(parameter, attribute, value)


def transformer_config(
    shape: ModelShape, model: ModelConfig, parallel: ParallelConfig
) -> TransformerConfig:
    """Megatron's configuration of the model under this layout."""
    dtype = torch.bfloat16 if model.bf16 else torch.float32
    full = parallel.recompute_granularity == "full"
    pipelined = parallel.pipeline_model_parallel_size > 1
    chunks = virtual_stages(shape.num_layers, parallel)
    return TransformerConfig(
        num_layers=shape.num_layers,
        hidden_size=shape.hidden_size,
        ffn_hidden_size=shape.ffn_hidden_size,
        num_attention_heads=shape.num_attention_heads,
        num_query_groups=shape.num_query_groups,
        kv_channels=shape.head_dim,
        add_bias_linear=False,
        add_qkv_bias=shape.qkv_bias,
        gated_linear_unit=True,
        activation_func=F.silu,
        normalization="RMSNorm",
        layernorm_epsilon=shape.norm_eps,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        tensor_model_parallel_size=parallel.tensor_model_parallel_size,
        pipeline_model_parallel_size=parallel.pipeline_model_parallel_size,
        sequence_parallel=parallel.sequence_parallel and parallel.tensor_model_parallel_size > 1,
        virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
        # An interleaved pipeline sends forward and backward between the same two ranks. With the
        # defaults Megatron mixes those messages up at two stages, and training goes on with wrong
        # gradients; only its own training script guards against that.
        overlap_p2p_comm=chunks > 1,
        batch_p2p_comm=chunks == 1,
        pipeline_dtype=dtype,
        params_dtype=dtype,
        bf16=model.bf16,
        variable_seq_lengths=pipelined,
        # Megatron accepts variable lengths only with this dispatcher, dense models included.
        moe_token_dispatcher_type="alltoall",
        deallocate_pipeline_outputs=pipelined,
        recompute_granularity=(
            None if parallel.recompute_granularity == "none" else parallel.recompute_granularity
        ),
        recompute_method=parallel.recompute_method if full else None,
        recompute_num_layers=parallel.recompute_num_layers if full else None,
        # Weights come from a file, so nothing is drawn, and nothing depends on the layout.
        perform_initialization=False,
        use_cpu_initialization=not cpu.has_gpu(),
        calculate_per_token_loss=True,
        finalize_model_grads_func=finalize_sum,
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
        bias_dropout_fusion=False,
        bias_activation_fusion=False,
        apply_rope_fusion=cpu.has_packed_rope(),
    )
