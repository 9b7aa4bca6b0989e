# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Every CUDA kernel on the CPU against double precision; mutants prove that the tests notice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.csrc.build import CSRC, PLAIN, SANITIZED, compile_test, run

TESTS = ("gae_test", "stats_test", "losses_test", "log_prob_test")
ORDERS = (("forward", "0"), ("reverse", "0"), ("random", "1"), ("random", "2"))


@pytest.mark.parametrize("build", ["plain", "sanitized"])
@pytest.mark.parametrize("name", TESTS)
def test_against_double_precision(
    program: Callable[[str, str], Path], name: str, build: str
) -> None:
    """Threads in three orders; the sanitizers look for undefined accesses and arithmetic."""
    for order, seed in ORDERS:
        done = run(program(name, build), order, seed)
        assert done.returncode == 0, (order, seed, done.stdout + done.stderr[-3000:])


@pytest.mark.parametrize("name", TESTS)
def test_nothing_races(program: Callable[[str, str], Path], name: str) -> None:
    """Threads, warps and blocks touch the same memory only where a barrier orders them."""
    done = run(program(name, "threads"), "forward", "0", "300")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]


@dataclass(frozen=True)
class Mutant:
    """A mistake in a kernel: ``new`` for the one ``old`` in ``file``; then ``test`` must fail."""

    test: str
    file: str
    old: str
    new: str
    flags: tuple[str, ...] = PLAIN


GAE, STATS, LOSSES, LOG_PROB = TESTS
PLATFORM = "include/megacurl/platform.cuh"
SHUFFLE = """const GaeRun before = shuffle_up(run, d);
      if (lane >= d) run = powers.join(before, run);"""
MUTANTS = {
    "gae: totals are read without a barrier": Mutant(
        GAE, "kernels/gae.cuh", "shuffle_up(run, 1);\n    __syncthreads();", "shuffle_up(run, 1);"
    ),
    "gae: totals in one buffer": Mutant(GAE, "kernels/gae.cuh", "half ^= 1", "half ^= 0"),
    "gae: powers are read without a barrier": Mutant(
        GAE, "kernels/gae.cuh", "top, power2);\n  __syncthreads();", "top, power2);"
    ),
    "gae: shuffle in a branch": Mutant(
        GAE,
        "kernels/gae.cuh",
        SHUFFLE,
        "if (lane >= d) run = powers.join(shuffle_up(run, d), run);",
    ),
    "gae: runs joined in the wrong order": Mutant(
        GAE, "kernels/gae.cuh", "powers.join(before, run)", "powers.join(run, before)"
    ),
    "gae: state is not carried over chunks": Mutant(
        GAE, "kernels/gae.cuh", "carry = powers.apply(totals[half * kGaeWarps + w], carry);", ";"
    ),
    "gae: powers beyond the first 128 are wrong": Mutant(
        GAE, "kernels/gae.cuh", "e += kGaeThreads, power *= step", "e += kGaeThreads"
    ),
    "gae: table of powers too small": Mutant(
        GAE, "kernels/gae.cuh", "power1, kGaeChunk + 1", "power1, kGaeChunk", SANITIZED
    ),
    "gae: lambda is not clamped": Mutant(
        GAE, "kernels/gae.cuh", "lambda < 0.0 ? 0.0 : lambda > 1.0 ? 1.0 : lambda", "lambda"
    ),
    "reduction: total is read without a barrier": Mutant(
        STATS, PLATFORM, "part[threadIdx.x >> 5] = value;\n  __syncthreads();",
        "part[threadIdx.x >> 5] = value;",
    ),
    "reduction: array is written while it is read": Mutant(
        LOSSES, PLATFORM, "__syncthreads();  // an earlier reduction may still be reading", ""
    ),
    "reduction: barrier in a branch": Mutant(
        STATS, PLATFORM, "__syncthreads();  // an earlier reduction may still be reading",
        "if (threadIdx.x < 64) __syncthreads();",
    ),
    "stats: one token too many": Mutant(
        STATS, "kernels/value_stats.cuh", "t < length; t += kStatsThreads",
        "t <= length; t += kStatsThreads",
    ),
    "stats: lanes leave before the shuffles": Mutant(
        STATS, "kernels/value_stats.cuh", "if (g >= a.groups.sequences) return;",
        "if (g >= a.groups.sequences || a.groups[g] + lane >= a.groups[g + 1]) return;",
    ),
    "stats: moments merged with the wrong count": Mutant(
        STATS, "kernels/moments.cuh", "delta * delta * a.count * share",
        "delta * delta * b.count * share",
    ),
    "stats: numbers are not taken around one of them": Mutant(
        STATS, "kernels/moments.cuh", "if (count == 0.f) pivot = x;", ""
    ),
    "weights: one trajectory too many": Mutant(
        STATS, "kernels/cvpo_weights.cuh", "i >= a.trajectories", "i > a.trajectories", SANITIZED
    ),
    "loss: blocks share a row": Mutant(
        LOSSES, "kernels/policy_loss.cuh", "a.partial[int64_t(blockIdx.x) * kPolicyStats + i]",
        "a.partial[i]",
    ),
    "loss: an empty grid is launched": Mutant(
        LOSSES, "kernels/policy_loss.cuh", "if (blocks > 0)\n    MC_LAUNCH(policy",
        "MC_LAUNCH(policy",
    ),
    "loss: gradient beyond the clamp": Mutant(
        LOSSES, "kernels/policy_loss.cuh", "slope = clamped ? 0.f : loss", "slope = loss"
    ),
    "loss: the dual clip bounds good tokens too": Mutant(
        LOSSES, "kernels/policy_loss.cuh", "ratio > a.dual_clip && advantage < 0.f",
        "ratio > a.dual_clip",
    ),
    "log-prob: sums are not moved to a new maximum": Mutant(
        LOG_PROB, "kernels/log_prob.cuh", "weighted = scale * (weighted + shift * sum);",
        "weighted = scale * weighted;",
    ),
    "log-prob: a logit of -inf counts": Mutant(
        LOG_PROB, "kernels/log_prob.cuh", "e == 0.f ? 0.f : (z - top) * e;", "(z - top) * e;"
    ),
    "loss: masked tokens have a gradient": Mutant(
        LOSSES, "kernels/value_loss.cuh", "if (!a.mask || a.mask[t]) {", "{"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(program: Callable[[str, str], Path], tmp_path: Path, name: str) -> None:
    mutant = MUTANTS[name]
    copy = tmp_path / "csrc"
    shutil.copytree(CSRC, copy)
    source = (copy / mutant.file).read_text("utf-8")
    assert source.count(mutant.old) == 1, "the mutant no longer fits the kernel"
    (copy / mutant.file).write_text(source.replace(mutant.old, mutant.new), "utf-8")
    built = compile_test(
        copy / "tests" / f"{mutant.test}.cpp", tmp_path / "mutant", mutant.flags, "-Wno-error"
    )
    assert any(run(built, order, seed).returncode != 0 for order, seed in ORDERS)
