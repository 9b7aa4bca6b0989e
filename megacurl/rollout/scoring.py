# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Log-probs of given tokens by plain forwards, the reference the decode loop is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

_LOGIT_BUDGET = 1 << 27  # float32 logits of one forward: 512 MiB


@torch.inference_mode()
def score_completions(
    model: PreTrainedModel,
    prompt_ids: Sequence[Sequence[int]],
    completion_ids: Sequence[Sequence[int]],
    temperature: float,
    max_tokens: int,
) -> list[list[float]]:
    """log softmax(logits / temperature) at each completion token.

    Args:
        model: causal language model in eval mode.
        prompt_ids: prompts, none empty.
        completion_ids: the completion of each prompt.
        temperature: > 0.
        max_tokens: padded tokens of one forward at most (a longer sequence goes alone).
    """
    rows = [[*prompt, *done] for prompt, done in zip(prompt_ids, completion_ids, strict=True)]
    budget = min(max_tokens, max(1, _LOGIT_BUDGET // int(model.config.vocab_size)))
    scores: list[list[float]] = [[] for _ in rows]
    for group in _groups(rows, budget):
        width = len(rows[group[0]])
        # Padding on the right is behind every real token, so causality hides it.
        ids = torch.tensor([rows[i] + [0] * (width - len(rows[i])) for i in group])
        ids = ids.to(model.device)
        first = min(len(prompt_ids[i]) for i in group)
        logits = model(ids, logits_to_keep=width - first + 1).logits[:, :-1].float()
        log_probs = logits.div_(temperature).log_softmax(-1)
        chosen = log_probs.gather(-1, ids[:, first:, None]).squeeze(-1).tolist()
        for i, values in zip(group, chosen, strict=True):
            start = len(prompt_ids[i]) - first
            scores[i] = values[start : start + len(completion_ids[i])]
    return scores


def _groups(rows: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
    """Indices of rows cut into batches, longest first, so that padding stays small."""
    groups: list[list[int]] = []
    for index in sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True):
        if groups and len(rows[groups[-1][0]]) * (len(groups[-1]) + 1) <= max_tokens:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups
