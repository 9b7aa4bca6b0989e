# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Choosing a decode step by trying it: it is used only if it agrees with the model's forward.

transformers changes between releases, and models that look alike differ in a multiplier. A few
tokens decoded at start-up cost milliseconds and turn silent corruption into a fallback or an error.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor
from transformers import PreTrainedModel

from megacurl.rollout.decoder import HFDecoder
from megacurl.rollout.fused_decoder import FusedDecoder, supports_fused

logger = logging.getLogger(__name__)

# Largest accepted difference of a log-prob, relative to the spread of the logits.
_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
_PROMPT_LENGTHS = (5, 3)
_STEPS = 3


def build_decoder(model: PreTrainedModel, fused: bool) -> HFDecoder:
    """The fastest decoder that reproduces the model's forward.

    Raises:
        ValueError: none does; the model needs another engine.
    """
    if fused and supports_fused(model):
        decoder = FusedDecoder(model)
        error = decode_error(decoder)
        if error <= _TOLERANCE[decoder.dtype]:
            return decoder
        logger.warning(
            "the fused decode step differs from %s.forward by %.2g; using the slower generic one",
            type(model).__name__,
            error,
        )
    generic = HFDecoder(model)
    error = decode_error(generic)
    if not error <= _TOLERANCE[generic.dtype]:
        raise ValueError(
            f"{type(model).__name__}: decoding with a cache differs from the full forward by"
            f" {error:.2g}; the transformers engine can't run this model, use another one"
        )
    return generic


@torch.inference_mode()
def decode_error(decoder: HFDecoder) -> float:
    """Largest difference between decoded and full-forward log-probs, over the logits' spread."""
    vocab = int(decoder.model.config.vocab_size)
    total = [length + _STEPS for length in _PROMPT_LENGTHS]
    rows = [[(7 * i + 3 * row + 1) % vocab for i in range(n)] for row, n in enumerate(total)]
    decoded = _decode_rows(decoder, rows)
    worst = 0.0
    for row, ids in enumerate(rows):
        start = _PROMPT_LENGTHS[row]
        full = decoder.model(torch.tensor([ids], device=decoder.device)).logits[0].float()
        expected = full[start : start + _STEPS]
        spread = float(expected.std().clamp(min=1e-6))
        gap = (decoded[row].log_softmax(-1) - expected.log_softmax(-1)).abs().max()
        worst = max(worst, float(gap) / spread) if torch.isfinite(gap) else float("inf")
    return worst


def _decode_rows(decoder: HFDecoder, rows: list[list[int]]) -> Tensor:
    """Prefill rows of different lengths, then decode ``_STEPS`` tokens: [rows, steps, V]."""
    width = max(_PROMPT_LENGTHS)
    padded = [
        ids[:length] + [0] * (width - length)
        for ids, length in zip(rows, _PROMPT_LENGTHS, strict=True)
    ]
    slots = torch.arange(len(rows), device=decoder.device)
    cache = decoder.new_cache(len(rows))
    cache.reserve(width + _STEPS, width + _STEPS)
    cache.write(slots, slots, *decoder.prefill(torch.tensor(padded, device=decoder.device)))
    start = torch.tensor(_PROMPT_LENGTHS, device=decoder.device)
    outputs = []
    for step in range(_STEPS):
        ids = torch.tensor(
            [row[length + step] for row, length in zip(rows, _PROMPT_LENGTHS, strict=True)],
            device=decoder.device,
        )
        cache.begin_step(start + step, width + step + 1)
        outputs.append(decoder.decode(ids, start + step, cache))
    return torch.stack(outputs, dim=1)
