# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""TRL's output layer in vocabulary chunks, for log_prob.py; runs in the peers' environment.

``log_prob_peers.py SHAPE RESULT THREADS``: the fields of a Shape as JSON, a file of ``torch.save``.
"""

from __future__ import annotations

import dataclasses
import json
import sys

import torch
from torch import Tensor
from trl.kernels.chunked_logprob import ChunkedLogProbFunction

from log_prob_case import Shape, measure

VOCABULARY_CHUNK = 32768  # TRL's own choice


def chunked(hidden: Tensor, weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies at temperature 1."""
    log_prob, entropy, *_ = ChunkedLogProbFunction.apply(
        hidden, weight, None, targets, 1.0, VOCABULARY_CHUNK, None, 1.0, ("entropy",)
    )
    return log_prob, entropy


def main() -> None:
    """Entry point."""
    shape, result, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.save(dataclasses.asdict(measure(chunked, Shape(**json.loads(shape)))), result)


if __name__ == "__main__":
    main()
