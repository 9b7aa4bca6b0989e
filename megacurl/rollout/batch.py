# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The rows in flight: their state on the device, their samples on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.rollout.decoder import HFDecoder
from megacurl.rollout.sampling import RowSampling, counter_uniform, sample_tokens
from megacurl.rollout.types import Sample, SamplingSpec

# Rows of the integer state: one tensor, so that moving a row is one kernel.
_TOKEN, _POSITION, _GENERATED, _SEED, _TOP_K, _GREEDY = range(6)
_TEMPERATURE, _TOP_P = range(2)


@dataclass(slots=True)
class Row:
    """A sample being generated.

    Args:
        sample: receives tokens and log-probs.
        sampling: settings of its request.
        seed: seed of the sample.
        stop: tokens that end it.
        last_token: token the next step feeds.
        position: position of that token.
        generated: tokens generated so far, a prefix included; the counter of its random stream.
        final_length: prompt plus all tokens that may be generated.
    """

    sample: Sample
    sampling: SamplingSpec
    seed: int
    stop: frozenset[int]
    last_token: int
    position: int
    generated: int
    final_length: int

    def accept(self, token: int, log_prob: float) -> bool:
        """Record a sampled token; True when the sample is finished."""
        if not math.isfinite(log_prob):
            self.sample.finish_reason = "error"
            return True
        self.sample.token_ids.append(token)
        self.sample.log_probs.append(log_prob)
        self.generated += 1
        self.position += 1
        if token in self.stop:
            self.sample.finish_reason = "stop"
        elif self.generated >= self.sampling.max_tokens:
            self.sample.finish_reason = "length"
        else:
            return False
        return True

    @property
    def bans_stop(self) -> bool:
        """Whether min_tokens forbids its stop tokens now."""
        return self.generated < self.sampling.min_tokens


class RowBatch:
    """Active rows 0..n-1 of a slot cache.

    Args:
        decoder: the model.
        num_slots: rows at most.
    """

    def __init__(self, decoder: HFDecoder, num_slots: int) -> None:
        self._decoder = decoder
        self._cache = decoder.new_cache(num_slots)
        self._rows: list[Row] = []
        device = decoder.device
        self._ints = torch.zeros((6, num_slots), dtype=torch.long, device=device)
        self._floats = torch.ones((2, num_slots), dtype=torch.float32, device=device)
        self._refresh()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def longest_final(self) -> int:
        """Largest final length of the active rows."""
        return self._longest_final

    def add(
        self,
        rows: Sequence[Row],
        keys_values: tuple[list[Tensor], list[Tensor]] | None,
        source: Sequence[int],
    ) -> None:
        """Put rows into free slots.

        Args:
            rows: new rows.
            keys_values: prefilled keys and values of P contexts, or None for one-token contexts.
            source: the context of each row, in [0, P).
        """
        first, last = len(self._rows), len(self._rows) + len(rows)
        device = self._ints.device
        self._rows += rows
        self._refresh()
        self._cache.reserve(self._length, self._longest_final)
        if keys_values is not None:
            slots = torch.arange(first, last, device=device)
            self._cache.write(slots, torch.tensor(source, device=device), *keys_values)
        ints = [
            (r.last_token, r.position, r.generated, r.seed, r.sampling.top_k, _greedy(r))
            for r in rows
        ]
        floats = [(1.0 if _greedy(r) else r.sampling.temperature, r.sampling.top_p) for r in rows]
        self._ints[:, first:last] = torch.tensor(ints, dtype=torch.long, device=device).t()
        self._floats[:, first:last] = torch.tensor(floats, device=device).t()

    def step(self) -> int:
        """One token for every row; returns how many rows finished."""
        count = len(self._rows)
        ints, floats = self._ints[:, :count], self._floats[:, :count]
        self._cache.reserve(self._length, self._longest_final)
        self._cache.begin_step(ints[_POSITION], self._length)
        logits = self._decoder.decode(ints[_TOKEN], ints[_POSITION], self._cache)
        if self._any_min_tokens:
            self._ban_stop_tokens(logits)
        sampling = RowSampling(
            temperature=floats[_TEMPERATURE],
            greedy=ints[_GREEDY].bool(),
            top_k=ints[_TOP_K],
            top_p=floats[_TOP_P],
            any_greedy=self._any_greedy,
            any_filter=self._any_filter,
        )
        uniforms = counter_uniform(ints[_SEED], ints[_GENERATED])
        tokens, log_probs = sample_tokens(logits, sampling, uniforms)
        ints[_TOKEN] = tokens
        ints[_POSITION : _GENERATED + 1] += 1
        self._length += 1
        pairs = zip(self._rows, tokens.tolist(), log_probs.tolist(), strict=True)
        done = [i for i, (row, token, lp) in enumerate(pairs) if row.accept(token, lp)]
        if done:
            self._drop(done)
        return len(done)

    def _drop(self, done: list[int]) -> None:
        """Fill the slots of finished rows with rows from the end."""
        broken = [i for i in done if self._rows[i].sample.finish_reason == "error"]
        finished = set(done)
        kept = len(self._rows) - len(done)
        holes = [i for i in done if i < kept]
        movers = [i for i in range(kept, len(self._rows)) if i not in finished]
        device = self._ints.device
        if broken:
            # A masked NaN still spoils a sum, and the slot will be used again.
            self._cache.clear(torch.tensor(broken, device=device))
        if movers:
            target = torch.tensor(holes, device=device)
            origin = torch.tensor(movers, device=device)
            self._cache.move(target, origin, max(self._rows[i].position for i in movers))
            self._ints[:, target] = self._ints[:, origin]
            self._floats[:, target] = self._floats[:, origin]
            for hole, mover in zip(holes, movers, strict=True):
                self._rows[hole] = self._rows[mover]
        del self._rows[kept:]
        self._refresh()

    def _ban_stop_tokens(self, logits: Tensor) -> None:
        pairs = [(i, t) for i, row in enumerate(self._rows) if row.bans_stop for t in row.stop]
        if pairs:
            index = torch.tensor(pairs, device=logits.device).t()
            logits[index[0], index[1]] = -torch.inf

    def _refresh(self) -> None:
        """Recompute what depends on the set of rows."""
        rows = self._rows
        self._length = max((row.position for row in rows), default=0) + 1
        self._longest_final = max((row.final_length for row in rows), default=0)
        self._any_greedy = any(_greedy(row) for row in rows)
        self._any_filter = any(r.sampling.top_k > 0 or r.sampling.top_p < 1.0 for r in rows)
        self._any_min_tokens = any(row.bans_stop and row.stop for row in rows)


def _greedy(row: Row) -> bool:
    return row.sampling.temperature == 0.0
