# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Rollout engines side by side: start, generated tokens, weight update, log-prob gap, in one table.

Every engine that is installed takes the same prompts, sampling settings and weights, and rounds
alternate between them, so that a busy machine slows all alike. The first row is transformers' own
``generate``, for comparison.

    python benchmarks/rollout.py [--size 0.85m] [--clock cpu] [--dtype bfloat16] [--rounds 3]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen2Config

from megacurl.rollout import Request, RolloutEngine, SamplingSpec, TensorMeta, create_engine

PROMPT_TOKENS = 20
SAMPLES = 16
EOS_IDS = list(range(400, 425))  # about one token in twenty of a random model ends a sample
MAX_LEN = 256
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    "transformers, generic step": ("transformers", {"fused": False}),
    "transformers": ("transformers", {}),
    "vllm": ("vllm", {"kv_cache_mb": 256}),
}
# (hidden, layers, heads, key-value heads, intermediate, vocabulary, standard deviation)
SIZES = {
    "0.85m": (128, 4, 4, 2, 384, 512, 0.05),
    "100m": (768, 12, 12, 4, 2560, 16000, 0.02),
}
WORKLOADS = {
    "0.85m": {
        "8x16 samples, 25 tokens": (8, 25, False),
        "8x16 samples, 200 tokens": (8, 200, False),
        "64x16 samples, <= 128, EOS": (64, 128, True),
    },
    "100m": {"4x16 samples, 32 tokens": (4, 32, False)},
}

Clock = Callable[[], float]
Contender = Callable[[], int]


@dataclass
class Row:
    """Figures of one engine; rates are the best of the rounds."""

    start: float | None = None
    speeds: dict[str, float] = field(default_factory=dict)
    sync: float | None = None
    gap: float | None = None


def make_model(folder: Path, size: str) -> None:
    """A random model in the shape of Qwen2."""
    hidden, layers, heads, kv_heads, intermediate, vocabulary, std = SIZES[size]
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=2048,
        initializer_range=std,
        tie_word_embeddings=True,
        eos_token_id=EOS_IDS,
        pad_token_id=0,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)


def prompts(count: int) -> list[tuple[int, ...]]:
    """Distinct prompts of 16 to 20 tokens."""
    return [
        tuple(1 + (31 * i + 7 * j) % 390 for j in range(PROMPT_TOKENS - i % 5))
        for i in range(count)
    ]


def hf_generate(model: PreTrainedModel, count: int, length: int, stop: bool) -> Contender:
    """transformers' generate on the same prompts, left padded as it wants them."""
    rows = prompts(count)
    ids = torch.zeros((count, PROMPT_TOKENS), dtype=torch.long)
    for row, prompt in enumerate(rows):
        ids[row, PROMPT_TOKENS - len(prompt) :] = torch.tensor(prompt)
    ids = ids.to(model.device)

    def run() -> int:
        with torch.inference_mode():
            out = model.generate(
                ids,
                attention_mask=(ids != 0).long(),
                do_sample=True,
                top_k=0,
                num_return_sequences=SAMPLES,
                max_new_tokens=length,
                min_new_tokens=None if stop else length,
                pad_token_id=0,
            )[:, PROMPT_TOKENS:]
        if not stop:
            return int(out.numel())
        ended = torch.isin(out, torch.tensor(EOS_IDS, device=out.device))
        # Tokens up to and with the first end; what follows is padding.
        return int((ended.cumsum(1) - ended.long() == 0).sum())

    return run


def requests_of(count: int, length: int, stop: bool) -> list[Request]:
    """The same prompts for an engine."""
    sampling = SamplingSpec(length, ignore_eos=not stop)
    return [
        Request(str(i), prompt, sampling, tuple(range(i * SAMPLES, (i + 1) * SAMPLES)))
        for i, prompt in enumerate(prompts(count))
    ]


def engine_generate(engine: RolloutEngine, requests: list[Request]) -> Contender:
    """The engine on the same prompts."""
    return lambda: sum(len(sample.token_ids) for sample in engine.generate(requests))


def measure(contenders: dict[str, Contender], rounds: int, clock: Clock) -> dict[str, float]:
    """Best tokens (or bytes) per second of each, after a warm-up round."""
    best = dict.fromkeys(contenders, 0.0)
    for round_index in range(rounds + 1):
        for name, run in contenders.items():
            begin = clock()
            amount = run()
            speed = amount / (clock() - begin)
            if round_index:
                best[name] = max(best[name], speed)
    return best


def update(engine: RolloutEngine, tensors: list[tuple[str, torch.Tensor]]) -> Contender:
    """A full weight update in buckets of three tensors, with its proof."""

    def run() -> int:
        engine.pause()
        version = engine.weight_version + 1
        with engine.open_update([TensorMeta.of(*pair) for pair in tensors], version) as sending:
            for begin in range(0, len(tensors), 3):
                sending.load(tensors[begin : begin + 3])
            sending.commit()
        engine.digest()
        engine.resume()
        return sum(tensor.nbytes for _, tensor in tensors)

    return run


def logprob_gap(engine: RolloutEngine, reference: RolloutEngine) -> float:
    """Mean |engine - reference| over the tokens that the engine sampled."""
    requests = requests_of(2, 48, False)
    samples = engine.generate(requests)
    prompt_of = {request.id: request.prompt_ids for request in requests}
    scores = reference.score(
        [prompt_of[sample.request_id] for sample in samples], [s.token_ids for s in samples]
    )
    gaps = [
        abs(ours - theirs)
        for sample, score in zip(samples, scores, strict=True)
        for ours, theirs in zip(sample.log_probs, score, strict=True)
    ]
    return sum(gaps) / len(gaps)


def start_engines(folder: Path, args: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """(engine, time of its start) of every engine that is installed, by label."""
    started: dict[str, Any] = {}
    for label, (name, settings) in ENGINES.items():
        common = {"dtype": args.dtype, "device": args.device, "max_model_len": MAX_LEN}
        begin = clock()
        try:
            engine = create_engine(name, model=folder, **common, **settings)
        except ImportError as error:
            print(f"{label}: left out, {error}")
            continue
        engine.start()
        started[label] = engine, clock() - begin
    return started


def run(folder: Path, args: argparse.Namespace, clock: Clock) -> dict[str, Row]:
    """Measure everything on one model."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, args.dtype))
    model = model.to(args.device).eval()
    engines = start_engines(folder, args, clock)
    rows = {label: Row(start=seconds) for label, (_, seconds) in engines.items()}
    rows = {"HF generate": Row(), **rows}
    for title, workload in WORKLOADS[args.size].items():
        contenders = {"HF generate": hf_generate(model, *workload)}
        for label, (engine, _) in engines.items():
            contenders[label] = engine_generate(engine, requests_of(*workload))
        for label, speed in measure(contenders, args.rounds, clock).items():
            rows[label].speeds[title] = speed
    tensors = [(name, tensor.detach()) for name, tensor in model.named_parameters()]
    updates = {label: update(engine, tensors) for label, (engine, _) in engines.items()}
    for label, speed in measure(updates, args.rounds, clock).items():
        rows[label].sync = speed
    reference = engines["transformers, generic step"][0]
    for label, (engine, _) in engines.items():
        rows[label].gap = logprob_gap(engine, reference)
    for engine, _ in engines.values():
        engine.shutdown()
    return rows


def print_table(rows: dict[str, Row], args: argparse.Namespace, parameters: int) -> None:
    """One Markdown table; in brackets the ratio to the first row, or to the first engine's."""
    print(
        f"\n{datetime.date.today()}, {platform.machine()} {args.device}, {args.threads} thread(s)"
        f" of {os.cpu_count()} cores, {parameters / 1e6:.2f} M parameters, {args.dtype},"
        f" {args.clock} clock, best of {args.rounds}\n"
    )
    titles = list(WORKLOADS[args.size])
    header = ["engine", "start s", *(f"tokens/s, {t}" for t in titles), "sync MB/s", "log-prob gap"]
    print("| " + " | ".join(header) + " |")
    print("|---" + "|---:" * (len(header) - 1) + "|")
    base = rows["HF generate"]
    first = next(row for row in rows.values() if row.sync)
    for label, row in rows.items():
        cells = [label, "" if row.start is None else f"{row.start:.1f}"]
        cells += [f"{row.speeds[t]:.0f} ({row.speeds[t] / base.speeds[t]:.2f}x)" for t in titles]
        if row.sync is None or first.sync is None or row.gap is None:
            cells += ["", ""]
        else:
            cells += [f"{row.sync / 1e6:.0f} ({row.sync / first.sync:.2f}x)", f"{row.gap:.1e}"]
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=tuple(SIZES), default="0.85m")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: seconds of this process"
    )
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.clock == "cpu" else time.perf_counter
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder, args.size)
        rows = run(folder, args, clock)
        sizes = AutoModelForCausalLM.from_pretrained(folder).num_parameters()
    print_table(rows, args, sizes)


if __name__ == "__main__":
    main()
