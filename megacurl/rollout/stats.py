# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Counters of an engine, kept through a resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from megacurl.rollout.types import Request, Sample


@dataclass(slots=True)
class EngineStats:
    """Totals over all ``generate`` calls."""

    requests: int = 0
    samples: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    aborted: int = 0
    errors: int = 0
    truncated: int = 0
    updates: int = 0
    seconds: float = 0.0

    def record(
        self, requests: Sequence[Request], samples: Sequence[Sample], seconds: float
    ) -> None:
        """Count one call."""
        self.requests += len(requests)
        self.samples += len(samples)
        self.prompt_tokens += sum(len(request.prompt_ids) for request in requests)
        self.generated_tokens += sum(len(sample.token_ids) for sample in samples)
        self.aborted += sum(sample.finish_reason == "abort" for sample in samples)
        self.errors += sum(sample.finish_reason == "error" for sample in samples)
        self.truncated += sum(sample.finish_reason == "length" for sample in samples)
        self.seconds += seconds

    def metrics(self) -> dict[str, float]:
        """The counters and the mean speed in generated tokens a second."""
        speed = self.generated_tokens / self.seconds if self.seconds > 0 else 0.0
        return {**{k: float(v) for k, v in asdict(self).items()}, "tokens_per_second": speed}

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers by name."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore; refuses a state with other keys."""
        names = {field.name for field in fields(self)}
        if set(state) != names:
            raise ValueError(
                f"engine counters have keys {sorted(names)}, the state has {sorted(state)}"
            )
        for name in names:
            setattr(self, name, state[name])
