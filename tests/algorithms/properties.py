# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""What must hold for every function of a packed rollout, checked on drawn ones.

Garbage at masked positions changes no bit, the order of the responses and the cut into
micro-batches change no bit of what belongs to a response or a token, sums over micro-batches are
those of the whole, and everything is finite and equal to the loops of ``loops.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests.algorithms.strategies import Drawn

PerToken = Callable[[Drawn, list[int]], Tensor]
"""Token quantity [T] of a part of the rollout; the list says which responses it holds."""
PerResponse = Callable[[Drawn, list[int]], Tensor]
"""The same for a number a response, [N]."""
Loss = Callable[[Drawn, list[int]], Tensor]
"""A scalar, differentiable by the first token quantity."""


def check_close(found: Tensor, expected: Tensor, dtype: torch.dtype, scale: float = 1.0) -> None:
    """Equal up to rounding of ``dtype`` where sums of numbers up to ``scale`` were formed."""
    rtol, atol = (2e-5, 2e-6) if dtype == torch.float32 else (1e-9, 1e-12)
    assert bool(found.isfinite().all()), found
    torch.testing.assert_close(
        found.double(), expected.double(), rtol=rtol, atol=atol * max(scale, 1.0)
    )


def check_per_token(drawn: Drawn, run: PerToken, expected: Tensor, scale: float = 1.0) -> None:
    """Check a function of token quantities; its masked positions must be 0."""
    whole = run(drawn, list(range(drawn.size)))
    check_close(whole, expected, drawn.tokens[0].dtype, scale)
    assert bool((whole[~drawn.mask] == 0).all())
    _check_parts(drawn, run, whole, drawn.positions)


def check_per_response(
    drawn: Drawn,
    run: PerResponse,
    expected: Sequence[float],
    dtype: torch.dtype,
    scale: float = 1.0,
    *,
    of_group: bool = False,
) -> None:
    """Check a function that gives one number a response; ``of_group``: it must see all of them."""
    whole = run(drawn, list(range(drawn.size)))
    check_close(whole, torch.tensor(expected, dtype=torch.float64), dtype, scale)
    _check_parts(drawn, run, whole, torch.tensor, of_group)


def _check_parts(
    drawn: Drawn,
    run: PerToken,
    whole: Tensor,
    places: Callable[[list[int]], Tensor],
    of_group: bool = False,
) -> None:
    assert torch.equal(run(drawn.soiled(), list(range(drawn.size))), whole)
    for own in [drawn.order, *([] if of_group else drawn.cut)]:
        assert torch.equal(run(drawn.part(own), own), whole[places(own).long()])


def check_loss(
    drawn: Drawn, run: Loss, expected: float, slopes: Tensor, scale: float = 1.0
) -> None:
    """Check a loss and its gradient by the first token quantity.

    ``scale`` is the sum of the sizes of the loss's terms.
    """
    dtype = drawn.tokens[0].dtype
    everything = list(range(drawn.size))
    loss, grad = _differentiate(drawn, run, everything)
    check_close(loss, torch.tensor(expected, dtype=torch.float64), dtype, scale)
    check_close(grad, slopes, dtype)
    assert bool((grad[~drawn.mask] == 0).all())

    again, soiled = _differentiate(drawn.soiled(), run, everything)
    assert torch.equal(again, loss) and torch.equal(soiled, grad)
    for pieces in ([drawn.order], drawn.cut):
        total = torch.zeros((), dtype=torch.float64)
        for own in pieces:
            partial, grad_of_part = _differentiate(drawn.part(own), run, own)
            total += partial
            assert torch.equal(grad_of_part, grad[drawn.positions(own)])
        check_close(total, loss, dtype, scale)


def _differentiate(drawn: Drawn, run: Loss, own: list[int]) -> tuple[Tensor, Tensor]:
    leaf = drawn.tokens[0].clone().requires_grad_()
    loss = run(drawn.replacing(leaf), own)
    (grad,) = torch.autograd.grad(loss, leaf)
    return loss.detach(), grad
