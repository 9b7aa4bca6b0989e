# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A verifier that pays at random: the control for "does training need the true reward?"."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from megacurl.rewards.registry import register_verifier
from megacurl.rewards.verdict import Verdict


@register_verifier("coin_flip")
@dataclass(frozen=True)
class CoinFlip:
    """Correct for half of all (response, answer) pairs, whatever they say.

    The coin is a hash, so the same run gives the same rewards on any machine and after a resume.
    """

    seed: int = 0

    def __call__(self, response: str, answer: str, *, finished: bool) -> Verdict:
        digest = hashlib.blake2b(digest_size=8)
        for part in (str(self.seed), answer, response):
            # The length in front keeps ("ab", "c") and ("a", "bc") apart.
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        return Verdict(correct=digest.digest()[0] % 2 == 1, parsed=True)
