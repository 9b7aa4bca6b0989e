# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Responses to a batch of questions: dealt to the ranks' engines, judged there, known to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from megacurl.algorithms.outcome import outcome_reward
from megacurl.config.schema import Config
from megacurl.data.prompt import Prompt
from megacurl.megatron.groups import Grid
from megacurl.rewards.registry import Verifier
from megacurl.rewards.verdict import Verdict
from megacurl.rewards.verify import verify_batch
from megacurl.rollout.engine import RolloutEngine
from megacurl.rollout.seeds import sample_seed
from megacurl.rollout.types import Request, Sample, SamplingSpec
from megacurl.trajectory import Trajectory

EncodedPrompt = tuple[Prompt, list[int]]
"""A question and its token ids."""
ShowProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Judged:
    """A response and its verdict."""

    sample: Sample
    verdict: Verdict


class Generator:
    """Samples and judges over all ranks; every rank's engine holds the whole policy.

    A response depends on (seed, step, question, sample number) and the weights, not on the rank
    that generates it.
    """

    def __init__(
        self, engine: RolloutEngine, tokenizer: Any, verifier: Verifier, grid: Grid, seed: int
    ) -> None:
        self.engine, self.tokenizer, self.verifier = engine, tokenizer, verifier
        self.grid, self.seed = grid, seed

    def __call__(
        self,
        prompts: Sequence[EncodedPrompt],
        n: int,
        sampling: SamplingSpec,
        *,
        step: int,
        version: int,
        on_progress: ShowProgress | None = None,
    ) -> list[list[Judged]]:
        """n judged responses to each of ``prompts``, in order, on every rank; collective.

        Args:
            prompts: questions with their token ids.
            n: responses to each.
            sampling: temperature, limits.
            step: part of the seeds.
            version: weights that every engine must hold.
            on_progress: told (finished, all) of this rank's responses.

        Raises:
            FloatingPointError: if an engine produced non-finite probabilities.
            RuntimeError: if an engine generated with other weights than ``version``.
        """
        mine = range(self.grid.rank, len(prompts), self.grid.world_size)
        requests = [
            Request(
                id=str(i),
                prompt_ids=tuple(prompts[i][1]),
                sampling=sampling,
                seeds=tuple(sample_seed(self.seed, step, prompts[i][0].id, k) for k in range(n)),
            )
            for i in mine
        ]
        samples = self.engine.generate(requests, on_progress=on_progress) if requests else []
        judged = self._judge(samples, [prompts[i][0].answer for i in mine for _ in range(n)])
        share = {i: judged[k * n : (k + 1) * n] for k, i in enumerate(mine)}
        merged: dict[int, list[Judged]] = {}
        for part in self.grid.gather_objects(share):
            merged.update(part)
        self._check(merged, version)
        return [merged[i] for i in range(len(prompts))]

    def _judge(self, samples: Sequence[Sample], answers: Sequence[str]) -> list[Judged]:
        if not samples:  # fewer questions than ranks; a tokenizer makes one text of no samples
            return []
        texts = self.tokenizer.batch_decode(
            [s.token_ids for s in samples], skip_special_tokens=True
        )
        finished = [s.finish_reason == "stop" for s in samples]
        verdicts = verify_batch(self.verifier, texts, answers, finished)
        return [Judged(s, v) for s, v in zip(samples, verdicts, strict=True)]

    @staticmethod
    def _check(merged: dict[int, list[Judged]], version: int) -> None:
        everyone = [j.sample for group in merged.values() for j in group]
        broken = sum(s.finish_reason == "error" for s in everyone)
        if broken:
            raise FloatingPointError(
                f"{broken} of {len(everyone)} responses ended in non-finite probabilities"
            )
        others = {s.version for s in everyone} - {version}
        if others:
            raise RuntimeError(
                f"engines generated with weight versions {sorted(others)}, the trainer is at "
                f"{version}; a weight sync was lost"
            )


def to_trajectories(
    prompts: Sequence[EncodedPrompt],
    responses: Sequence[Sequence[Judged]],
    config: Config,
) -> list[Trajectory]:
    """The flat list of a step's trajectories, with the algorithm's rewards."""
    return [
        Trajectory(
            prompt_id=prompt.id,
            group=group,
            prompt_ids=tuple(ids),
            response_ids=tuple(judged.sample.token_ids),
            log_probs=tuple(judged.sample.log_probs),
            truncated=judged.sample.finish_reason != "stop",
            version=judged.sample.version,
            correct=judged.verdict.correct,
            score=judged.verdict.score,
            reward=outcome_reward(
                config,
                score=judged.verdict.score,
                truncated=judged.sample.finish_reason != "stop",
                length=len(judged.sample.token_ids),
            ),
            parsed=judged.verdict.parsed,
            timeout=judged.verdict.timeout,
            error=judged.verdict.error,
        )
        for group, ((prompt, ids), row) in enumerate(zip(prompts, responses, strict=True))
        for judged in row
    ]


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Means over a step's trajectories."""
    count = len(trajectories)
    return {
        "rollout/accuracy": sum(t.correct for t in trajectories) / count,
        "rollout/score_mean": sum(t.score for t in trajectories) / count,
        "rollout/reward_mean": sum(t.reward for t in trajectories) / count,
        "rollout/length_mean": sum(len(t.response_ids) for t in trajectories) / count,
        "rollout/mixed_groups": _share_of_mixed_groups(trajectories),
        "rollout/truncated": sum(t.truncated for t in trajectories) / count,
        "reward/unparsed": sum(not t.parsed and t.error is None for t in trajectories) / count,
        "reward/timeout": sum(t.timeout for t in trajectories) / count,
        "reward/error": sum(t.error is not None for t in trajectories) / count,
    }


def _share_of_mixed_groups(trajectories: Sequence[Trajectory]) -> float:
    """Questions whose responses differ in score: the only ones with a group advantage."""
    scores: dict[int, set[float]] = {}
    for trajectory in trajectories:
        scores.setdefault(trajectory.group, set()).add(trajectory.score)
    return sum(len(seen) > 1 for seen in scores.values()) / len(scores)
