#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
# Checks that need a CUDA machine: run this there, keep what it prints in docs/gpu_results.md.
# Needs torch with CUDA, megatron-core and transformers; Transformer Engine is used where installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
date -u +"%Y-%m-%d %H:%M UTC"
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
exec python -m pytest tests/gpu -q -rA -p no:cacheprovider "$@"
