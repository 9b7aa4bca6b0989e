# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""An engine that behaves as a client of servers, of which one rank alone loses one.

It generates for itself, as the transformers engine does; what it stands in for is the news of a
lost server, which real servers give when they die.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from megacurl.rollout.control import GenerateControl
from megacurl.rollout.transformers_engine import TransformersEngine
from megacurl.rollout.types import Request, Sample

SERVER = "http://there:1"


class LossyEngine(TransformersEngine):
    """Without a lead it starts from the folder's weights, and loses a server as it generates."""

    is_client = True

    def __init__(
        self,
        model: str | Path,
        *,
        urls: Sequence[str],
        leader: bool,
        transfer_dir: str,
        load_weights: bool,
        dtype: str,
        device: str,
        max_model_len: int,
        max_batch_size: int,
    ) -> None:
        super().__init__(
            model,
            load_weights=not leader,
            dtype=dtype,
            device=device,
            max_model_len=max_model_len,
            max_batch_size=max_batch_size,
        )
        self._leader = leader
        self._lost: dict[str, str] = {}

    @property
    def lost(self) -> dict[str, str]:
        return dict(self._lost)

    def _generate(self, requests: Sequence[Request], control: GenerateControl) -> list[Sample]:
        if not self._leader:
            self._lost = {SERVER: f"{SERVER}: gone"}
        return super()._generate(requests, control)

    def _follow(self, version: int) -> None:
        self._lost = {}


ENGINE = LossyEngine
