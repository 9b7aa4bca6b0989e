# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Packed sequences: a token quantity is 1-D ``[T]``; b owns ``[cu_seqlens[b], cu_seqlens[b+1])``.

``mask`` (bool ``[T]``) is True for tokens the policy sampled ("valid"). Whatever stands at other
positions, NaN included, never reaches a result: it is selected away, not multiplied by zero.
"""

from __future__ import annotations

import torch
from torch import Tensor


def check_shapes(mask: Tensor, cu_seqlens: Tensor, **token_values: Tensor) -> None:
    """Check types and shapes; named extra tensors must be ``[T]`` like ``mask``.

    Reads no value, so on a GPU it does not wait for the device.

    Raises:
        ValueError: naming the field, its shape, and what is expected.
    """
    if mask.dtype != torch.bool or mask.dim() != 1:
        raise ValueError(
            f"mask is {mask.dtype} of shape {tuple(mask.shape)}; give a 1-D torch.bool tensor"
        )
    for name, value in token_values.items():
        if value.shape != mask.shape:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)} but mask has {tuple(mask.shape)}; "
                "both hold one entry a packed token"
            )
    if cu_seqlens.dim() != 1 or cu_seqlens.numel() < 1 or cu_seqlens.is_floating_point():
        raise ValueError(
            f"cu_seqlens is {cu_seqlens.dtype} of shape {tuple(cu_seqlens.shape)}; "
            "give int32 offsets [B+1] that start at 0"
        )


def check_packed(mask: Tensor, cu_seqlens: Tensor, **token_values: Tensor) -> None:
    """Check the layout of a packed batch: :func:`check_shapes`, and offsets from 0 up to T.

    Raises:
        ValueError: naming the field, its shape or value, and what is expected.
    """
    check_shapes(mask, cu_seqlens, **token_values)
    # One transfer for all three conditions: every read of a value waits for the device.
    grows = (cu_seqlens.diff() >= 0).all()
    ends = torch.stack((cu_seqlens[0].long(), cu_seqlens[-1].long(), grows.long())).tolist()
    if ends != [0, mask.numel(), 1]:
        raise ValueError(
            f"cu_seqlens runs from {ends[0]} to {ends[1]}"
            f"{'' if ends[2] else ' and decreases'} for {mask.numel()} tokens; "
            "it must rise from 0 to the number of tokens"
        )


def check_per_sequence(cu_seqlens: Tensor, **sequence_values: Tensor) -> None:
    """Check that every named tensor holds one entry a sequence (``[B]``)."""
    num_sequences = cu_seqlens.numel() - 1
    for name, value in sequence_values.items():
        if value.shape != (num_sequences,):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}; "
                f"give one entry for each of the {num_sequences} sequences of cu_seqlens"
            )


def segment_ids(cu_seqlens: Tensor, num_tokens: int) -> Tensor:
    """Return the sequence index of every token, int64 ``[T]``."""
    lengths = cu_seqlens.diff().long()
    indices = torch.arange(lengths.numel(), device=cu_seqlens.device)
    return torch.repeat_interleave(indices, lengths, output_size=num_tokens)


def expand(sequence_values: Tensor, cu_seqlens: Tensor, num_tokens: int) -> Tensor:
    """Repeat a per-sequence tensor ``[B]`` for every token of its sequence, ``[T]``."""
    return torch.repeat_interleave(
        sequence_values, cu_seqlens.diff().long(), output_size=num_tokens
    )


def valid_lengths(mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return the number of valid tokens of every sequence, int64 ``[B]``."""
    counts = torch.nn.functional.pad(mask.long().cumsum(0), (1, 0))
    return counts[cu_seqlens[1:].long()] - counts[cu_seqlens[:-1].long()]


def select(x: Tensor, mask: Tensor) -> Tensor:
    """Return ``x`` at valid positions and 0 elsewhere; masked positions get gradient exactly 0."""
    return torch.where(mask, x, torch.zeros((), dtype=x.dtype, device=x.device))


def segment_sum(x: Tensor, mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Sum floating point ``x`` over the valid tokens of each sequence, ``[B]``.

    Each sequence is summed by itself, so its result does not depend on the others in the batch.
    """
    return torch.segment_reduce(select(x, mask), "sum", offsets=cu_seqlens.long(), initial=0.0)


def segment_mean(x: Tensor, mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Average ``x`` over the valid tokens of each sequence, ``[B]``; 0 where there is none."""
    counts = valid_lengths(mask, cu_seqlens).clamp(min=1)
    return segment_sum(x, mask, cu_seqlens) / counts


def first_valid_index(mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return the packed position of each sequence's first valid token, int64 ``[B]``, or -1."""
    earlier = torch.nn.functional.pad(mask.long().cumsum(0), (1, 0))[cu_seqlens.long()]
    positions = torch.nn.functional.pad(mask.nonzero().squeeze(1), (0, 1), value=-1)
    return torch.where(earlier.diff() > 0, positions[earlier[:-1]], -1)


def last_valid_index(mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return the packed position of each sequence's last valid token, int64 ``[B]``; -1 if none."""
    latest = latest_valid_index(mask, cu_seqlens)
    ends, starts = cu_seqlens[1:].long(), cu_seqlens[:-1].long()
    padded = torch.nn.functional.pad(latest, (1, 0), value=-1)  # padded[e] belongs to token e-1
    return torch.where(ends > starts, padded[ends], -1)


def latest_valid_index(mask: Tensor, cu_seqlens: Tensor) -> Tensor:
    """Return, for every token, the nearest valid position at or before it in its own sequence.

    int64 ``[T]``; -1 where the sequence has no valid token so far.
    """
    positions = torch.arange(mask.numel(), device=mask.device)
    if mask.numel() == 0:
        return positions
    latest = torch.where(mask, positions, -1).cummax(0).values
    starts = expand(cu_seqlens[:-1].long(), cu_seqlens, mask.numel())
    return torch.where(latest >= starts, latest, -1)
