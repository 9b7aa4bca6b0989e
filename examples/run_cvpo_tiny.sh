#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
set -euo pipefail
# shellcheck source=examples/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage='Usage: examples/run_cvpo_tiny.sh [FLAG ...]

CVPO from end to end on a CPU: makes a base model of 0.85 M parameters that answers sums by a mixture
of good and bad strategies, trains actor and critic on Megatron-Core for 40 steps, and compares the
accuracy on held-out questions before and after. --algorithm NAME runs another preset on the same
task.

  --base DIR                         use a model that examples/models/make_tiny_base.py made before
                                     (default: make one in RUN_DIR/base)'

begin cvpo-tiny "$usage" "$@"
take_flag base ""
base="$VALUE"
set_up

if [[ -n "$base" ]]; then
    [[ -f "$base/config.json" && -f "$base/train.jsonl" && -f "$base/test.jsonl" ]] ||
        die "--base $base has no config.json, train.jsonl and test.jsonl"
    base="$(realpath "$base")"
elif is_dry_run; then
    base="$MEGACURL_ROOT/examples/models/tiny" # its config.json is all that a dry run reads
else
    base="$RUN_DIR/base"
    run_step python "$MEGACURL_ROOT/examples/models/make_tiny_base.py" --output "$base"
fi

# The learning rates are large because the model is tiny.
DEFAULTS=(
    --algorithm cvpo
    --hf-checkpoint "$base"
    --prompt-data "$base/train.jsonl"
    --eval-prompt-data "heldout=$base/test.jsonl"
    --rollout-batch-size 16
    --n-samples-per-prompt 8
    --train-iters 40
    --rollout-max-prompt-len 128
    --rollout-max-response-len 48
    --max-tokens-per-micro-batch 8192
    --lr 1e-4
    --weight-decay 0
    --require-value
    --n-samples-per-eval-prompt 8
    --eval-top-p 1.0
)
# Monte-Carlo targets (--lam-critic 1) suit responses of 25 tokens; CVPO's 0.1 is made for thousands.
read_flag algorithm cvpo
case "$VALUE" in
    grpo | grpo_asyn | dr_grpo | rloo | gspo | dapo | vcrl) ;; # no critic
    cvpo*) DEFAULTS+=(--critic-lr 1e-3 --critic-warmup-iters 2 --lam-critic 1.0) ;;
    *) DEFAULTS+=(--critic-lr 1e-3 --critic-warmup-iters 2) ;;
esac
launch_on_this_machine
