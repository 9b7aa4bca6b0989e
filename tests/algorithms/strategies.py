# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Drawn rollouts: packed responses of any shape, with orders, cuts and garbage to try on them.

Numbers are multiples of 1/64: exact in float32, and their differences too, so that no rounding
decides on which side of a clip range a token is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from hypothesis import strategies as st
from torch import Tensor

GRID = 64
GARBAGE = (float("nan"), float("inf"), 1e30, float("-inf"), -1e30)
QUESTIONS = (7, -3, 1000)


@dataclass(frozen=True)
class Drawn:
    """A rollout of N packed responses with T tokens.

    Fields: mask bool [T] and cu_seqlens [N+1]; group, correct, truncated [N]; tokens and numbers:
    as many float64 [T] and [N] as asked for; order: a permutation of the responses; cut: their
    micro-batches, some empty; first_garbage: where GARBAGE begins at the first masked position.
    """

    mask: Tensor
    cu_seqlens: Tensor
    group: Tensor
    correct: Tensor
    truncated: Tensor
    tokens: tuple[Tensor, ...]
    numbers: tuple[Tensor, ...]
    order: list[int]
    cut: list[list[int]]
    first_garbage: int

    @property
    def size(self) -> int:
        """Number of responses."""
        return self.group.numel()

    @property
    def lengths(self) -> Tensor:
        """Valid tokens of each response, int64 [N]."""
        return torch.tensor([int(part.sum()) for part in self.split(self.mask)], dtype=torch.long)

    def split(self, x: Tensor) -> list[Tensor]:
        """The parts [length] of a token quantity, one a response."""
        return list(x.split(self.cu_seqlens.diff().tolist()))

    def valid(self, x: Tensor) -> list[list[float]]:
        """The numbers at valid tokens, a list a response."""
        return [
            part[mask].tolist()
            for part, mask in zip(self.split(x), self.split(self.mask), strict=True)
        ]

    def spread(self, rows: list[list[float]]) -> Tensor:
        """The inverse of :meth:`valid`: float64 [T] with zeros where masked."""
        result = torch.zeros(self.mask.numel(), dtype=torch.float64)
        result[self.mask] = torch.tensor([x for row in rows for x in row], dtype=torch.float64)
        return result

    def to(self, dtype: torch.dtype) -> Drawn:
        """With tokens and numbers in another type."""
        return replace(
            self,
            tokens=tuple(x.to(dtype) for x in self.tokens),
            numbers=tuple(x.to(dtype) for x in self.numbers),
        )

    def replacing(self, first: Tensor) -> Drawn:
        """With another first token quantity."""
        return replace(self, tokens=(first, *self.tokens[1:]))

    def soiled(self) -> Drawn:
        """With NaN, infinity and huge numbers at the masked positions of every token quantity."""
        at = (torch.arange(self.mask.numel()) + self.first_garbage) % len(GARBAGE)
        garbage = torch.tensor(GARBAGE, dtype=torch.float64)[at]
        return replace(
            self, tokens=tuple(torch.where(self.mask, x, garbage.to(x)) for x in self.tokens)
        )

    def part(self, responses: list[int]) -> Drawn:
        """The rollout of some of the responses, in the given order."""
        at = self.positions(responses)
        chosen = torch.tensor(responses, dtype=torch.long)
        lengths = self.cu_seqlens.diff()[chosen]
        return Drawn(
            mask=self.mask[at],
            cu_seqlens=torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).int(),
            group=self.group[chosen],
            correct=self.correct[chosen],
            truncated=self.truncated[chosen],
            tokens=tuple(x[at] for x in self.tokens),
            numbers=tuple(x[chosen] for x in self.numbers),
            order=list(range(len(responses))),
            cut=[list(range(len(responses)))],
            first_garbage=self.first_garbage,
        )

    def positions(self, responses: list[int]) -> Tensor:
        """Where their tokens are, in the given order, int64."""
        bounds = self.cu_seqlens.tolist()
        pieces = [torch.arange(bounds[i], bounds[i + 1]) for i in responses]
        return torch.cat(pieces) if pieces else torch.zeros(0, dtype=torch.long)


@dataclass(frozen=True)
class _Response:
    question: int
    valid: tuple[bool, ...]
    correct: bool
    truncated: bool


@st.composite
def _masks(draw: st.DrawFn, longest: int) -> tuple[bool, ...]:
    """One valid token, none, no token at all, only valid ones, or any pattern of gaps."""
    kind = draw(st.sampled_from(("one", "gaps", "all", "gaps", "none", "empty")))
    if kind in ("one", "empty"):
        return (True,) * (kind == "one")
    length = draw(st.integers(2, longest))
    if kind == "gaps":
        bits = draw(st.integers(1, 2**length - 2))
        return tuple(bool(bits >> t & 1) for t in range(length))
    return (kind == "all",) * length


@st.composite
def _responses(draw: st.DrawFn, most: int, longest: int) -> list[_Response]:
    """A question's responses may be all right, all wrong, or all left out."""
    kinds = {
        question: draw(st.sampled_from(("mixed", "right", "wrong", "left out")))
        for question in QUESTIONS
    }
    found = []
    # The larger ones more often: only in them can much go wrong.
    sizes = (*range(most + 1), *range(most // 2 + 1, most + 1), *range(most // 2 + 1, most + 1))
    for _ in range(draw(st.sampled_from(sizes))):
        question = draw(st.sampled_from(QUESTIONS))
        kind, valid = kinds[question], draw(_masks(longest))
        correct, truncated = draw(st.booleans()), draw(st.booleans())
        if kind == "left out":
            valid, truncated = (False,) * len(valid), True
        if kind in ("right", "wrong"):
            correct = kind == "right"
        found.append(_Response(question, valid, correct, truncated))
    return found


@st.composite
def rollouts(
    draw: st.DrawFn,
    *,
    tokens: int = 0,
    numbers: int = 0,
    largest: float = 4.0,
    most: int = 7,
    longest: int = 9,
) -> Drawn:
    """Rollouts with that many token quantities and numbers a response, at most ``largest``."""
    responses = draw(_responses(most, longest))
    lengths = torch.tensor([0] + [len(r.valid) for r in responses])
    total, count = int(lengths.sum()), len(responses)
    grid = st.integers(-round(largest * GRID), round(largest * GRID))

    def vector(size: int) -> Tensor:
        drawn = draw(st.lists(grid, min_size=size, max_size=size))
        return torch.tensor(drawn, dtype=torch.float64) / GRID

    order = draw(st.permutations(range(count)))
    places = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    return Drawn(
        mask=torch.tensor([valid for r in responses for valid in r.valid], dtype=torch.bool),
        cu_seqlens=lengths.cumsum(0).int(),
        group=torch.tensor([r.question for r in responses], dtype=torch.long),
        correct=torch.tensor([r.correct for r in responses], dtype=torch.bool),
        truncated=torch.tensor([r.truncated for r in responses], dtype=torch.bool),
        tokens=tuple(vector(total) for _ in range(tokens)),
        numbers=tuple(vector(count) for _ in range(numbers)),
        order=list(order),
        cut=[[i for i in order if places[i] == place] for place in range(4)],
        first_garbage=draw(st.integers(0, len(GARBAGE) - 1)),
    )
