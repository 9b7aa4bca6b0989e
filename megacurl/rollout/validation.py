# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Requests are checked as a whole before any work: a bad one must not cost the good ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from megacurl.rollout.errors import RequestError
from megacurl.rollout.types import Request

_SEED_LIMIT = 1 << 63


def validate_requests(
    requests: Sequence[Request],
    *,
    vocab_size: int,
    max_model_len: int,
    eos_token_ids: Collection[int] = (),
) -> None:
    """Refuse requests an engine could only fail on later, or worse, die of.

    Args:
        requests: all requests of one ``generate`` call.
        vocab_size: rows of the embedding; valid ids are in [0, vocab_size).
        max_model_len: prompt plus generated tokens at most.
        eos_token_ids: the model's end-of-sequence tokens.

    Raises:
        RequestError: names the request, the field and the value.
    """
    seen: set[str] = set()
    for request in requests:
        if request.id in seen:
            raise RequestError(f"request {request.id!r}: id occurs twice in one call")
        seen.add(request.id)
        _check_ids(request, vocab_size)
        _check_seeds(request)
        _check_lengths(request, max_model_len)
        _check_prefix_unfinished(request, eos_token_ids)


def stop_tokens(request: Request, eos_token_ids: Iterable[int]) -> frozenset[int]:
    """All tokens that end a sample of ``request``."""
    own = frozenset(request.sampling.stop_token_ids)
    return own if request.sampling.ignore_eos else own | frozenset(eos_token_ids)


def check_token_ids(label: str, ids: Iterable[int], vocab_size: int) -> None:
    """Refuse anything but ints in [0, vocab_size); ``label`` says whose ids they are."""
    for position, token in enumerate(ids):
        # type() rather than isinstance(): True and numpy scalars are mistakes here.
        if type(token) is not int or not 0 <= token < vocab_size:
            raise RequestError(
                f"{label}[{position}] is {token!r}; token ids must be ints in [0, {vocab_size})"
            )


def _check_ids(request: Request, vocab_size: int) -> None:
    if not request.prompt_ids:
        raise RequestError(f"request {request.id!r}: prompt_ids is empty; give at least one token")
    fields = {
        "prompt_ids": request.prompt_ids,
        "prefix_ids": request.prefix_ids,
        "sampling.stop_token_ids": request.sampling.stop_token_ids,
    }
    for name, ids in fields.items():
        check_token_ids(f"request {request.id!r}: {name}", ids, vocab_size)


def _check_seeds(request: Request) -> None:
    if not request.seeds:
        raise RequestError(f"request {request.id!r}: seeds is empty; give one seed a sample")
    for seed in request.seeds:
        if type(seed) is not int or not 0 <= seed < _SEED_LIMIT:
            raise RequestError(f"request {request.id!r}: seed {seed!r} is not an int in [0, 2**63)")


def _check_lengths(request: Request, max_model_len: int) -> None:
    limit = request.sampling.max_tokens
    if len(request.prefix_ids) >= limit:
        raise RequestError(
            f"request {request.id!r}: prefix_ids has {len(request.prefix_ids)} tokens, which leaves"
            f" nothing of max_tokens={limit}; raise max_tokens or drop the request"
        )
    total = len(request.prompt_ids) + limit
    if total > max_model_len:
        raise RequestError(
            f"request {request.id!r}: {len(request.prompt_ids)} prompt tokens + max_tokens={limit}"
            f" = {total} exceed max_model_len={max_model_len}; shorten the prompt or max_tokens"
        )


def _check_prefix_unfinished(request: Request, eos_token_ids: Collection[int]) -> None:
    if request.prefix_ids and request.prefix_ids[-1] in stop_tokens(request, eos_token_ids):
        raise RequestError(
            f"request {request.id!r}: prefix_ids ends with the stop token"
            f" {request.prefix_ids[-1]}; this sample is already finished"
        )
