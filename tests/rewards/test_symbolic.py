# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Algebra in worker processes: what it decides, what never gets there, and how workers end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from megacurl.rewards import Verdict, close_workers, get_verifier
from megacurl.rewards.algebraic import MAX_CHARACTERS, to_algebra
from megacurl.rewards.normalise import normalise
from megacurl.rewards.symbolic import WORKERS, Algebra
from megacurl.rewards.worker_pool import WorkerPool

EQUAL = [
    ("2*sqrt(3)", "\\sqrt{12}"), ("(1+i)^2", "2i"), ("\\frac{\\sqrt3}{3}", "1/sqrt(3)"),
    ("0.1x", "\\frac{x}{10}"), ("1\\frac{3}{4}\\pi", "\\frac{7\\pi}{4}"),
    ("\\sqrt{3+2\\sqrt2}", "1+\\sqrt2"), ("\\sqrt[3]{16}", "2\\sqrt[3]{2}"),
    ("\\mathrm{e}^{2}-1", "(e-1)(e+1)"), ("e^{2x}", "(e^x)^2"), ("2^{n+1}-2", "2(2^n-1)"),
    ("\\frac{\\ln 9}{\\ln 2}", "2\\log_2 3"), ("\\binom{n}{2}", "n(n-1)/2"),
    ("sin(x)cos(x)", "\\frac12\\sin 2x"), ("f(x)=(x+1)^2", "x^2+2x+1"), ("x=\\sqrt8", "2\\sqrt2"),
    ("\\frac{\\sqrt{2}}{2^{98}}", "\\frac{1}{2^{97}\\sqrt{2}}"),
    # inside other forms
    ("1-\\sqrt{12}, 1+\\sqrt{12}", "1 \\pm 2\\sqrt3"), ("(\\sqrt{8}, 3)", "(2\\sqrt2, 3)"),
    ("x \\ge \\sqrt8", "[2\\sqrt2, \\infty)"), ("1 < x < \\sqrt{8}", "(1,2\\sqrt2)"),
    ("\\sqrt{8} \\text{ cm}", "2\\sqrt2"),
    ("y = 3x+13", "3x-y+13=0"),
    ("\\begin{bmatrix}\\sqrt8\\\\3\\end{bmatrix}", "\\begin{pmatrix}2\\sqrt2\\\\3\\end{pmatrix}"),
]  # fmt: skip

DIFFERENT = [
    # equal to math-verify, which rounds
    ("\\frac{\\sqrt{2}}{2^{98}}", "\\frac{\\sqrt{2}}{2^{99}}"),
    ("\\frac{\\sqrt2}{206!}", "\\frac{\\sqrt2}{204!}"), ("\\frac{1}{2006!}", "\\frac{1}{2004!}"),
    ("1.7320508\\sqrt{2}", "\\sqrt{6}"),
    ("e^{\\pi\\sqrt{163}}+x", "262537412640768744+x"),
    # equal if the forms around them were ignored
    ("3r^2", "3R^2"), ("y=5", "x=5"), ("y=\\sqrt5", "x=\\sqrt5"), ("x>\\sqrt8", "y>2\\sqrt2"),
    ("3x+4y+14=0", "3x-y+13=0"), ("(\\sqrt{8},3)", "[2\\sqrt2,3)"), ("\\sqrt8", "\\pm2\\sqrt2"),
    ("x>\\sqrt8", "[2\\sqrt2,\\infty)"), ("\\sqrt{8} \\text{ cm}", "2\\sqrt2 \\text{ m}"),
    ("\\begin{vmatrix}\\sqrt8\\end{vmatrix}", "\\begin{pmatrix}2\\sqrt2\\end{pmatrix}"),
    # true for some values only, or undefined
    ("|x|", "x"), ("\\sqrt{x^2}", "x"), ("2x", "2y"), ("\\sqrt2/0", "\\sqrt3/0"),
    ("\\log 2", "\\ln 2"), ("f(x)", "xf"),
]  # fmt: skip

# Beyond every cap, or slow although within them.
HOSTILE = [
    "9^{9^{9}}", "(10^7)!+x", "9!!!!!!!!!!", "\\binom{10^6}{5*10^5}", "999999999^{99999999}",
    "(" * 100 + "x" + ")" * 100, "x^{9^{9^{9}}}", "\\prod_{k=1}^{10000000} k", "9**9**9",
    "\\int_0^1 x^{x^{x}} dx", "(x+y+z+1)^{900}", "\\tan(\\tan(\\tan(\\tan(1000x))))",
    "((((x+1)^{50}+1)^{50}+1)^{50}+1)^{50}", "\\pi^{\\pi^{\\pi^{\\pi^{\\pi}}}}",
    "\\left(x+1\\right)" * 20, "\\frac{1}{1+" * 18 + "x" + "}" * 18,
    "(\\sqrt2+\\sqrt3+\\sqrt5+\\sqrt7+\\sqrt{11}+\\sqrt{13})^{50}", "e^{e^{e^{e^{e^{9}}}}}",
]  # fmt: skip


def grade(given: str, truth: str) -> Verdict:
    return get_verifier("math")(f"\\boxed{{{given}}}", truth, finished=True)


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def workers() -> list[psutil.Process]:
    return [
        process
        for process in psutil.Process().children()
        if any("symbolic_worker" in word for word in process.cmdline())
    ]


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left() -> Iterator[None]:
    close_workers()
    before = children()
    yield
    close_workers()
    assert children() <= before


@pytest.mark.parametrize(("given", "truth"), EQUAL)
def test_equal(given: str, truth: str) -> None:
    assert grade(given, truth).correct and grade(truth, given).correct
    without = get_verifier("math", symbolic=False)
    assert not without(f"\\boxed{{{given}}}", truth, finished=True).correct


def test_without_algebra_no_process_is_started() -> None:
    close_workers()
    # Verdicts are remembered, so it takes a pair that no other test asks about.
    given, truth = r"\boxed{2\sqrt{173}}", r"\sqrt{692}"
    exact = get_verifier("math", symbolic=False)
    assert exact(given, truth, finished=True) == Verdict(False, True, extracted=r"2\sqrt{173}")
    assert not workers()
    assert get_verifier("math")(given, truth, finished=True).correct
    assert workers()


@pytest.mark.parametrize(("given", "truth"), DIFFERENT)
def test_different(given: str, truth: str) -> None:
    assert not grade(given, truth).correct and not grade(truth, given).correct


@pytest.mark.parametrize(
    "text",
    ["42", "-3/4", "2^{10}", "x", "D", "Evelyn", "even", "\\text{odd}", "2516_8", "3:4", "2:15 PM",
     "x=1", "x<1", "1, x", "\\infty", "\\int x dx", "\\sum_{k=1}^{n} k", "1/2x", "1/2(3+x)",
     "x^2^3", "x+" * 151, "2\\frac{5}{3}x", "x^{1001}", "301!+x", "(5+300)!+x", "e^+2", "", "(",
     "\\", "x\\boxed", "x;import os", "(x+1)^{51}", "x^{9^9}", ")x(", "(x", "x)!"],
)  # fmt: skip
def test_what_is_no_algebra(text: str) -> None:
    assert to_algebra(normalise(text)) is None


def test_a_choice_label_before_an_expression() -> None:
    assert grade("(B) \\sqrt{8}", "2\\sqrt2").correct


def test_the_gate_takes_any_text() -> None:
    pieces = [*"{}()[]123.^_=+-*/!,|xen ", *HOSTILE, "\\frac", "\\sqrt", "\\binom", "\\log_", "sin"]
    rng = random.Random(0)
    for _ in range(3000):
        text = "".join(rng.choices(pieces, k=rng.choice([2, 5, 12])))
        found = to_algebra(normalise(text))
        assert found is None or 0 < len(found) < 2 * MAX_CHARACTERS


def test_plain_answers_are_fast_and_start_nothing() -> None:
    close_workers()
    start = time.process_time()
    for i in range(1000):
        assert grade(str(i), "500").correct == (i == 500)
    assert time.process_time() - start < 1.0
    for given, truth in (("\\sqrt{5}", "7"), ("odd", "even"), ("B", "C"), ("3/4", "\\sqrt2")):
        assert not grade(given, truth).correct
    assert workers() == []


def test_importing_and_plain_grading_load_no_algebra_system() -> None:
    code = (
        "import sys; from megacurl.rewards import get_verifier; "
        "assert get_verifier('math')('Answer: 1', '1', finished=True).correct; "
        "assert not {'sympy', 'math_verify', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_hostile_expressions_in_eight_threads() -> None:
    """Neither hangs nor leaks; answers that need no worker stay right beside them."""
    before, verdicts = children(), []

    def work(offset: int) -> None:
        for i in range(len(HOSTILE)):
            given = HOSTILE[(i + offset) % len(HOSTILE)]
            verdicts.append(grade(given, "x^2+\\sqrt{2}"))
            assert grade("41+1", "42").correct

    run_in_threads(work, 8)
    assert len(verdicts) == 8 * len(HOSTILE)
    assert not any(v.correct for v in verdicts)
    assert len(workers()) <= WORKERS
    close_workers()
    assert children() <= before
    assert grade("2\\sqrt{3}", "\\sqrt{12}").correct, "the next case starts new workers"


def run_in_threads(work: Callable[[int], object], count: int) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=180)
    assert not any(thread.is_alive() for thread in threads)


def test_a_hung_comparison_is_given_up_counted_and_remembered() -> None:
    verdict = grade("\\pi^{\\pi^{\\pi^{\\pi^{\\pi}}}}", "x^3+\\sqrt{2}")
    assert verdict.timeout and verdict.parsed and not verdict.correct
    start = time.monotonic()
    assert grade("\\pi^{\\pi^{\\pi^{\\pi^{\\pi}}}}", "x^3+\\sqrt{2}") == verdict
    assert time.monotonic() - start < 0.5
    assert grade("\\sqrt{20}", "2\\sqrt{5}").correct


def test_the_clock_ends_a_worker_that_sleeps() -> None:
    """Its processor time never runs out."""
    pool = WorkerPool("tests.rewards.sleeper", size=1, deadline=0.3)
    try:
        assert pool.ask(b"yes").answer is True
        assert pool.ask(b"sleep").answer is None
        assert pool.ask(b"yes").answer is True, "replaced"
        assert pool.ask(b"die").answer is None
        assert pool.ask(b"no").answer is False
    finally:
        pool.close()
    with pytest.raises(RuntimeError, match="closed"):
        pool.ask(b"yes")


def test_workers_that_do_not_start_are_an_error() -> None:
    pool = WorkerPool("tests.rewards.no_such_module", size=1, deadline=1.0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"did not start .* pip install math-verify"):
            pool.ask(b"yes")
    pool.close()


def test_a_worker_killed_between_two_questions_is_replaced() -> None:
    assert grade("\\sqrt{28}", "2\\sqrt{7}").correct
    for process in workers():
        process.kill()
        process.wait(timeout=10)
    assert grade("\\sqrt{44}", "2\\sqrt{11}").correct


def test_workers_outlive_the_thread_that_needed_them_first() -> None:
    close_workers()
    run_in_threads(lambda i: grade("\\sqrt{52}", "2\\sqrt{13}"), 1)
    first = {process.pid for process in workers()}
    assert first
    assert grade("\\sqrt{68}", "2\\sqrt{17}").correct
    assert first <= {process.pid for process in workers()}


def test_a_list_of_slow_expressions_is_given_up_as_a_whole() -> None:
    slow = [f"\\pi^{{\\pi^{{\\pi^{{\\pi^{{\\pi}}}}}}}}+{i}x" for i in range(8)]
    algebra, asked = Algebra(), []
    for i, given in enumerate(slow):
        start = time.monotonic()
        assert not algebra(given, f"x^{i + 2}+\\sqrt{{2}}")
        asked.append(time.monotonic() - start)
    assert algebra.timed_out
    assert sum(seconds > 0.1 for seconds in asked) <= 2


def test_a_forked_child_uses_workers_of_its_own() -> None:
    assert grade("\\sqrt{76}", "2\\sqrt{19}").correct
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if grade("\\sqrt{92}", "2\\sqrt{23}").correct else 2
            close_workers()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert grade("\\sqrt{116}", "2\\sqrt{29}").correct


def test_workers_end_with_a_parent_that_is_killed() -> None:
    code = (
        "import time; from megacurl.rewards import get_verifier; "
        r"v = get_verifier('math')(r'\boxed{\sqrt{8}}', r'2\sqrt{2}', finished=True); "
        "print(v.correct, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"True\n"
        started = psutil.Process(parent.pid).children(recursive=True)
        assert started
        os.kill(parent.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(started, timeout=10)
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
