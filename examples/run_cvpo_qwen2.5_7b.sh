#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=examples/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage='Usage: MODEL=/path/Qwen2.5-7B DATA=/path/dapo-math-17k.parquet examples/run_cvpo_qwen2.5_7b.sh [FLAG ...]

The run of the CVPO paper: Qwen2.5-7B on DAPO-Math-17k, 256 x 16 responses of up to 6144 tokens a step,
evaluated as avg@32 on AIME 2024 and 2025, AMC 2023 and 2024 and MATH-500; on 8 nodes of 8 GPUs with
80 GB. Start the script on every node (examples/slurm does).

  MODEL                              Hugging Face folder of Qwen2.5-7B (not needed by --dry-run)
  DATA                               training questions, the published parquet file
  NNODES, NODE_RANK                  number of nodes (default 8) and the index of this one
  MASTER_ADDR, MASTER_PORT           address of node 0 (needed if NNODES > 1), port (default 29500)
  GPUS_PER_NODE                      default 8
  AMC24                              AMC 2024 questions (jsonl with prompt and answer); the paper has
                                     them, but no set with a licence exists that could come along'

NNODES="${NNODES:-8}"
GPUS_PER_NODE="${GPUS_PER_NODE:-8}"

has_flag tensor-model-parallel-size "$@" || set -- --tensor-model-parallel-size 4 "$@"
begin cvpo-qwen2.5-7b "$usage" "$@"

world=$((NNODES * GPUS_PER_NODE))
if [[ -n "$DATA_PARALLEL_SIZE" ]]; then
    ((DATA_PARALLEL_SIZE * MODEL_PARALLEL_SIZE == world)) ||
        die "TP x PP x DP = $((DATA_PARALLEL_SIZE * MODEL_PARALLEL_SIZE)) processes, but" \
            "NNODES x GPUS_PER_NODE = $world"
fi
((world % MODEL_PARALLEL_SIZE == 0)) ||
    die "NNODES x GPUS_PER_NODE = $world is no multiple of TP x PP = $MODEL_PARALLEL_SIZE"

if is_dry_run; then
    MODEL="${MODEL:-$MEGACURL_ROOT/examples/models/qwen2.5-7b}" # config.json is all that is read
    DATA="${DATA:-dapo-math-17k.parquet}"
    set_up
else
    for name in MODEL DATA; do
        [[ -n "${!name:-}" ]] || die "set $name; see --help"
        [[ -e "${!name%%@*}" ]] || die "$name=${!name} does not exist"
    done
    ((NNODES == 1)) || for name in NODE_RANK MASTER_ADDR; do
        [[ -n "${!name:-}" ]] || die "set $name for NNODES=$NNODES; see --help"
    done
    set_up te
fi

# The frame of the published training questions (DAPO-Math-17k, Apache-2.0), so that the benchmarks are
# asked in the same way; questions that have it already are left alone.
# shellcheck disable=SC2016 # $Answer is part of the text
instruction='Solve the following math problem step by step. The last line of your response should be of the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.

{problem}

Remember to put your answer on its own line after "Answer:".'
benchmarks="$MEGACURL_ROOT/examples/data"

amc24=()
if [[ -n "${AMC24:-}" ]]; then
    [[ -f "$AMC24" ]] || die "AMC24=$AMC24 is no file"
    amc24=("amc24=$(realpath "$AMC24")")
fi

# Layout. TP 4 is the most that the model allows (4 key-value heads) and stays inside a node. Weights,
# fp32 gradients and a 16th of the optimizer state of actor and critic are 23 GiB a GPU (--dry-run),
# and 16384 packed tokens about 15 GB of activations with sequence parallelism (by count, not
# measured), so neither a pipeline, which would add a bubble, nor recomputation is needed. The rest is
# data parallelism.
#
# Paper: batch, samples, lengths, learning rates, warm-up, clip range. The algorithm's numbers are
# those of the preset; the coefficient of W_S is written out because it is the one to tune.
DEFAULTS=(
    --algorithm cvpo
    --hf-checkpoint "$MODEL"
    --prompt-data "$DATA"
    --instruction "$instruction"
    --eval-prompt-data
    "aime24=$benchmarks/aime24.jsonl"
    "aime25=$benchmarks/aime25.jsonl"
    "amc23=$benchmarks/amc23.jsonl"
    "${amc24[@]}"
    "math500=$benchmarks/math500.jsonl"
    --n-samples-per-eval-prompt 32
    --eval-interval 20
    --sequence-parallel
    --bf16
    --rollout-batch-size 256
    --n-samples-per-prompt 16
    --rollout-max-response-len 6144
    --max-tokens-per-micro-batch 16384
    --lr 1e-6
    --critic-lr 2e-6
    --variance-coefficient 0.3
    --critic-warmup-iters 21
    --save-interval 20
)

# Megatron needs one hardware queue so that tensor parallel communication starts before the matrix
# product it overlaps with.
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-1}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-8}"

if ((NNODES == 1)); then
    launch 1 "$GPUS_PER_NODE" --standalone
fi
launch "$NNODES" "$GPUS_PER_NODE" --nnodes "$NNODES" --node-rank "${NODE_RANK:-0}" \
    --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-29500}"
