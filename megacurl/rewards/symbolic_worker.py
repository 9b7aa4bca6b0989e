# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
r"""The process that does algebra: ``python -m megacurl.rewards.symbolic_worker PARENT``.

Reads lines ``["latex", "latex"]``, replies one byte each (worker_pool.py). math-verify and sympy
are imported here and nowhere else. The kernel ends this process when a comparison takes more than
CPU_SECONDS of its processor time, whether the parent is still there or not.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
from typing import Any

from megacurl.rewards.worker_pool import NO, READY, YES
from megacurl.utils.processes import end_with_parent

# Ordinary comparisons take 5 to 100 ms. Processor time, so that a busy machine changes no verdict.
CPU_SECONDS = 1.5
_MEMORY = 4 << 30
# Two expressions must agree at each of these points to this relative precision.
_POINTS, _DIGITS, _TOLERANCE = 3, 50, "1e-30"
_NOISE = 1e-30


def equivalent(given: str, truth: str) -> bool:
    """True when two LaTeX expressions are equal for all values of their variables.

    math-verify decides. It rounds first, so that sqrt(2)/2^98 equals sqrt(2)/2^99 to it; hence
    both sides must also agree relatively at a few points, which is checked first because it
    settles most wrong answers at once. What cannot be read is not equal.
    """
    from math_verify.grader import verify

    try:
        left, right = _parse(given, truth)
        return _agree(left, right) and bool(verify(right, left, timeout_seconds=None))
    except Exception:
        # The parser and sympy raise all kinds of errors on malformed input.
        return False


def _parse(*texts: str) -> list[Any]:
    import sympy
    from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy

    # r and R are two variables; mixed numbers were written as sums before.
    rules = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
    parsed = [
        latex2sympy(text, is_real=True, normalization_config=None, conversion_config=rules)
        for text in texts
    ]
    # To the parser i is a variable like any other.
    return [side.subs(sympy.Symbol("i", real=True), sympy.I) for side in parsed]


def _agree(left: Any, right: Any) -> bool:
    import sympy

    if not (isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr)):
        return False
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    for point in range(_POINTS):
        values = {
            symbol: sympy.Rational(7 * point + 4 * index + 9, 5)
            for index, symbol in enumerate(symbols)
        }
        a, b = (sympy.N(side.subs(values), _DIGITS) for side in (left, right))
        if not (a.is_number and b.is_number and a.is_finite and b.is_finite):
            return False
        size = max(abs(a), abs(b))
        if abs(a - b) <= size * sympy.Float(_TOLERANCE, _DIGITS):
            continue
        # Two spellings of zero leave nothing but noise.
        if size > _NOISE or sympy.simplify(left - right) != 0:
            return False
    return True


def _private_stdout() -> int:
    """The pipe to the parent; whatever libraries print goes nowhere from now on."""
    pipe, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    return pipe


def main() -> None:
    """Serve until stdin ends."""
    end_with_parent(int(sys.argv[1]))
    # Ctrl-C is for the trainer, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    logging.disable(logging.CRITICAL)
    pipe = _private_stdout()
    # Imports and fills the parser's tables, so that no question pays for that.
    if not equivalent(r"\frac{(x+1)^2}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}(x^2+2x+1)"):
        import math_verify

        raise RuntimeError(f"{math_verify.__file__} fails on a known pair of equal expressions")
    os.dup2(1, 2)
    os.write(pipe, READY)
    for line in sys.stdin.buffer:
        given, truth = json.loads(line)
        # SIGPROF is left at its default: it ends the process, inside a C function too.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        reply = YES if equivalent(given, truth) else NO
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(pipe, reply)


if __name__ == "__main__":
    main()
