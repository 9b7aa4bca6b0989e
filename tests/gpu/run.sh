#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
# Checks that need a CUDA machine: run this there, keep what it prints in docs/gpu_results.md.
#
# The operators need torch with CUDA, pytest, g++ and nvcc (CUDA_HOME). The training loop after
# them needs megatron-core and transformers, and uses Transformer Engine where it is installed; it is
# left out where megatron-core is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
status=0

date -u +"%Y-%m-%d %H:%M UTC"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
MC_BUILD=1 MC_CUDA=1 MC_EMU=1 python setup.py -q build_ext --inplace >/dev/null
python -m pytest tests/gpu/test_kernels.py -q -rA -p no:cacheprovider "$@" || status=1
python benchmarks/kernels.py --device cuda --size full || status=1

sanitizer="$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")"
if [[ -x "$sanitizer" ]]; then
    for tool in memcheck racecheck; do
        echo "compute-sanitizer $tool"
        timeout 90 "$sanitizer" --tool "$tool" --error-exitcode 3 \
            python -m pytest tests/gpu/test_kernels.py -q -p no:cacheprovider \
            -k "test_same_as_on_the_cpu and random" || status=1
    done
fi

if python -c 'import megatron.core' 2>/dev/null; then
    python -m pytest tests/gpu/test_cuda.py -q -rA -p no:cacheprovider "$@" || status=1
fi
exit "$status"
