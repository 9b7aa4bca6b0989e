#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=examples/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage='Usage: examples/run_cvpo_smollm2_135m.sh [FLAG ...]

Two CVPO steps with real weights on real questions, on a CPU: SmolLM2-135M-Instruct and GSM8K (200 of
its test questions, so a checkpoint trained here must not be scored on them). It shows that loading,
packing, rollouts, grading, weight sync and export work on a pretrained model of the Llama family; it
is too short to make the model better.

  --model DIR                        use a checkpoint that examples/models/make_smollm2.py made before
                                     (default: make one in RUN_DIR/base, from a package of 93 MB)'

begin cvpo-smollm2-135m "$usage" "$@"
take_flag model ""
model="$VALUE"
if is_dry_run; then set_up; else set_up smollm2; fi

if [[ -n "$model" ]]; then
    [[ -f "$model/config.json" ]] || die "--model $model has no config.json"
    model="$(realpath "$model")"
elif is_dry_run; then
    model="$MEGACURL_ROOT/examples/models/smollm2-135m" # its config.json is all that a dry run reads
else
    model="$RUN_DIR/base"
    run_step python "$MEGACURL_ROOT/examples/models/make_smollm2.py" --output "$model"
fi

# A rollout of 4 x 4 responses of at most 96 tokens takes about as long as the two updates.
DEFAULTS=(
    --algorithm cvpo
    --hf-checkpoint "$model"
    --prompt-data "$MEGACURL_ROOT/examples/data/gsm8k_test_200.jsonl"
    --instruction '{problem}

Think step by step in a few short lines. The last line must be of the form "Answer: N", where N is the
final number.'
    --rollout-batch-size 4
    --n-samples-per-prompt 4
    --train-iters 2
    --rollout-max-prompt-len 384
    --rollout-max-response-len 96
    --max-tokens-per-micro-batch 1024
    --log-prob-chunk-size 512
    --critic-warmup-iters 1
)
launch_on_this_machine
