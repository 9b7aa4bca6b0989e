# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""A 64-bit integer hash on tensors, bit for bit the same on every device.

The mixer is the finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014, fig. 17; constants of the variant by Stafford, mix 13).
"""

from __future__ import annotations

import torch
from torch import Tensor


def _signed(value: int) -> int:
    """The int64 with the bits of an unsigned 64-bit constant."""
    return value - (1 << 64) if value >> 63 else value


GOLDEN_GAMMA = _signed(0x9E3779B97F4A7C15)
"""Odd step of the Weyl sequence that turns counters into well-spread states."""
_MULTIPLIER_1 = _signed(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = _signed(0x94D049BB133111EB)


def _xor_shift_(state: Tensor, bits: int) -> Tensor:
    # torch shifts int64 arithmetically; the mask makes it the logical shift a bijection needs.
    return state.bitwise_xor_((state >> bits).bitwise_and_((1 << (64 - bits)) - 1))


def mix64_(state: Tensor) -> Tensor:
    """Bijective mixing of int64 words, in place.

    Args:
        state: int64, any shape; products wrap around.
    """
    if state.dtype != torch.int64:
        raise TypeError(f"mix64_ works on int64 words, not {state.dtype}")
    _xor_shift_(state, 30).mul_(_MULTIPLIER_1)
    _xor_shift_(state, 27).mul_(_MULTIPLIER_2)
    return _xor_shift_(state, 31)
