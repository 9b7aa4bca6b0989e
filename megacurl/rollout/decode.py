# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The decode loop of the embedded engine: continuous batching over slots.

Rows of the batch are samples at different positions. Each iteration admits waiting samples into
free slots, decodes one token for every row, and drops finished rows. The last token of a prompt
goes through the same step as every other token, so prefill needs no logits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from megacurl.rollout.admission import AdmissionQueue, BatchLimits, Unit, final_length
from megacurl.rollout.batch import Row, RowBatch
from megacurl.rollout.control import GenerateControl
from megacurl.rollout.decoder import HFDecoder
from megacurl.rollout.types import Request, Sample
from megacurl.rollout.validation import stop_tokens


class DecodeLoop:
    """One ``generate`` call.

    Args:
        decoder: the model.
        limits: batch size; every request must fit into it alone.
        eos_token_ids: the model's end-of-sequence tokens.
        version: version of the weights, written into the samples.
    """

    def __init__(
        self,
        decoder: HFDecoder,
        limits: BatchLimits,
        eos_token_ids: Collection[int],
        version: int,
    ) -> None:
        self._decoder = decoder
        self._limits = limits
        self._eos = eos_token_ids
        self._version = version

    @torch.inference_mode()
    def run(self, requests: Sequence[Request], control: GenerateControl) -> list[Sample]:
        """Generate until all samples are finished or ``control`` says stop.

        Returns:
            Samples ordered by request, then seed; unfinished ones with finish_reason "abort".
        """
        samples = {
            request.id: [
                Sample(request.id, index, version=self._version)
                for index in range(request.num_samples)
            ]
            for request in requests
        }
        ordered = [sample for group in samples.values() for sample in group]
        if not ordered:
            return []
        queue = AdmissionQueue(requests, self._limits)
        batch = RowBatch(self._decoder, self._num_slots(requests))
        finished = 0
        while (len(queue) or len(batch)) and not control.must_stop():
            self._admit(queue, batch, samples)
            done = batch.step()
            if done:
                finished += done
                control.report(finished, len(ordered))
        return ordered

    def _num_slots(self, requests: Sequence[Request]) -> int:
        total = sum(request.num_samples for request in requests)
        shortest = min(final_length(request) for request in requests)
        return min(total, self._limits.max_rows, max(1, self._limits.max_tokens // shortest))

    def _admit(
        self, queue: AdmissionQueue, batch: RowBatch, samples: dict[str, list[Sample]]
    ) -> None:
        units = queue.admit(len(batch), batch.longest_final)
        for group in queue.prefill_groups(units):
            # Requests with the same context share its prefill.
            distinct = dict.fromkeys(unit.context for unit in group)
            contexts = {context: index for index, context in enumerate(distinct)}
            keys_values = self._prefill(list(contexts))
            rows: list[Row] = []
            source: list[int] = []
            for unit in group:
                rows += self._rows(unit, samples[unit.request.id])
                source += [contexts[unit.context]] * unit.size
            batch.add(rows, keys_values, source)

    def _prefill(
        self, contexts: Sequence[tuple[int, ...]]
    ) -> tuple[list[Tensor], list[Tensor]] | None:
        """Keys and values of all but the last token of each context; None if there are none."""
        width = max(len(context) for context in contexts) - 1
        if width == 0:
            return None
        padded = [list(c[:-1]) + [0] * (width - len(c) + 1) for c in contexts]
        return self._decoder.prefill(torch.tensor(padded, device=self._decoder.device))

    def _rows(self, unit: Unit, samples: list[Sample]) -> list[Row]:
        request = unit.request
        stop = stop_tokens(request, self._eos)
        return [
            Row(
                sample=samples[index],
                sampling=request.sampling,
                seed=request.seeds[index],
                stop=stop,
                last_token=unit.context[-1],
                position=len(unit.context) - 1,
                generated=len(request.prefix_ids),
                final_length=unit.final_length,
            )
            for index in range(unit.first, unit.last)
        ]
