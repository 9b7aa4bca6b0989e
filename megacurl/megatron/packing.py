# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Sequences laid end to end for one forward pass, and where their responses are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from megacurl.megatron.attention import PackedSequences


@dataclass(frozen=True)
class PackedBatch:
    """B sequences of T tokens in all, of which R are response tokens.

    tokens, position_ids: int64 [1, T].
    sequences: cu_seqlens of the whole sequences, as Megatron wants them.
    predict_index: int64 [R], where in the pack response token r is predicted (one before it).
    end_index: int64 [B], last position of each sequence: the state after the response.
    targets: int64 [R], the response tokens.
    cu_seqlens: int32 [B + 1] over the response tokens.
    """

    tokens: Tensor
    position_ids: Tensor
    sequences: PackedSequences
    predict_index: Tensor
    end_index: Tensor
    targets: Tensor
    cu_seqlens: Tensor


def pack(
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    *,
    device: torch.device,
    multiple: int = 1,
) -> PackedBatch:
    """Pack ``prompts[i] + responses[i]``.

    The pack is filled up to a ``multiple`` of tokens (sequence parallelism splits it evenly) with a
    sequence of its own, which nothing reads. An empty list of sequences gives only that filler.
    """
    lengths = [len(p) + len(r) for p, r in zip(prompts, responses, strict=True)]
    if any(len(p) == 0 for p in prompts):
        raise ValueError("a prompt has no tokens; every response token needs a state before it")
    total = sum(lengths)
    filler = -total % multiple if total else multiple
    segments = [*lengths, filler] if filler else lengths
    tokens: list[int] = []
    for prompt, response in zip(prompts, responses, strict=True):
        tokens.extend(prompt)
        tokens.extend(response)
    tokens.extend([0] * filler)
    positions = torch.cat([torch.arange(n) for n in segments])

    starts = [0]
    for length in segments:
        starts.append(starts[-1] + length)
    predict, ends = [], []
    for start, length, response in zip(starts, lengths, responses, strict=False):
        end = start + length
        predict.append(torch.arange(end - len(response) - 1, end - 1))
        ends.append(end - 1)
    cu_seqlens = torch.tensor(starts, dtype=torch.int32, device=device)
    response_starts = torch.tensor([0, *(len(r) for r in responses)]).cumsum(0)
    return PackedBatch(
        tokens=torch.tensor(tokens, device=device)[None],
        position_ids=positions[None].to(device),
        sequences=PackedSequences(
            qkv_format="thd",
            cu_seqlens_q=cu_seqlens,
            cu_seqlens_kv=cu_seqlens,
            max_seqlen_q=max(segments),
            max_seqlen_kv=max(segments),
        ),
        predict_index=torch.cat(predict or [torch.empty(0, dtype=torch.long)]).to(device),
        end_index=torch.tensor(ends, dtype=torch.long, device=device),
        targets=torch.tensor(
            [t for response in responses for t in response], dtype=torch.long, device=device
        ),
        cu_seqlens=response_starts.to(device=device, dtype=torch.int32),
    )
