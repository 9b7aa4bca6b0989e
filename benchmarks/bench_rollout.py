# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Generated tokens per second of the embedded engine against transformers' own ``generate``.

Everything runs in one process on a model made on the spot, turn by turn in rounds, so that a busy
machine slows all of them alike; the best round counts. ``--clock cpu`` counts the time of this
process only, which is fairer with one thread on a shared machine. ``generate`` returns no
log-probs, the engine does: the comparison favours ``generate``.

    python benchmarks/bench_rollout.py [--threads 1] [--rounds 3] [--clock cpu] [--dtype bfloat16]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen2Config

from megacurl.rollout import Request, RolloutEngine, SamplingSpec, TensorMeta, create_engine

PROMPT_TOKENS = 20
SAMPLES = 16
EOS_IDS = list(range(400, 425))  # about one token in twenty of a random model ends a sample

Contender = Callable[[], int]


def make_model(folder: Path) -> None:
    """0.85 M parameters in the shape of Qwen2: 4 layers, hidden 128, vocabulary 512."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.05,
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


def engine_generate(engine: RolloutEngine, count: int, length: int, stop: bool) -> Contender:
    """The engine on the same prompts."""
    sampling = SamplingSpec(length, ignore_eos=not stop)
    requests = [
        Request(str(i), prompt, sampling, tuple(range(i * SAMPLES, (i + 1) * SAMPLES)))
        for i, prompt in enumerate(prompts(count))
    ]
    return lambda: sum(len(sample.token_ids) for sample in engine.generate(requests))


def measure(
    contenders: dict[str, Contender], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Best tokens per second of each, after a warm-up round."""
    best = dict.fromkeys(contenders, 0.0)
    for round_index in range(rounds + 1):
        for name, run in contenders.items():
            begin = clock()
            tokens = run()
            speed = tokens / (clock() - begin)
            if round_index:
                best[name] = max(best[name], speed)
    return best


def time_update(engine: RolloutEngine, model: PreTrainedModel) -> tuple[float, float]:
    """Seconds of a full weight update, and of the digest that proves it."""
    tensors = [(name, tensor.detach()) for name, tensor in model.named_parameters()]
    begin = time.perf_counter()
    with engine.open_update([TensorMeta.of(*pair) for pair in tensors], 1) as update:
        update.load(tensors)
        update.commit()
    middle = time.perf_counter()
    engine.digest()
    return middle - begin, time.perf_counter() - middle


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.clock == "cpu" else time.perf_counter
    workloads = {
        "8 prompts x 16, 25 tokens": (8, 25, False),
        "8 prompts x 16, 200 tokens": (8, 200, False),
        "64 prompts x 16, <= 128, EOS": (64, 128, True),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, args.dtype))
        model = model.to(args.device).eval()
        engines = {}
        for label, fused in (("engine, generic step", False), ("engine, fused step", True)):
            engines[label] = create_engine(
                "transformers", model=folder, fused=fused, dtype=args.dtype, device=args.device
            )
            engines[label].start()
        print(
            f"\ngenerated tokens/s, {args.dtype}, {args.device}, {args.threads} thread(s),"
            f" {args.clock} clock"
        )
        print(f"{'workload':30s} {'':22s} {'tokens/s':>9s} {'ratio':>6s}")
        for title, (count, length, stop) in workloads.items():
            contenders = {"HF generate": hf_generate(model, count, length, stop)}
            for label, engine in engines.items():
                contenders[label] = engine_generate(engine, count, length, stop)
            speeds = measure(contenders, args.rounds, clock)
            for label, speed in speeds.items():
                ratio = speed / speeds["HF generate"]
                print(f"{title:30s} {label:22s} {speed:9.0f} {ratio:5.2f}x")
        update, digest = time_update(engines["engine, fused step"], model)
        parameters = sum(p.numel() for p in model.parameters())
        print(
            f"{parameters / 1e6:.2f} M parameters: weight update {update * 1e3:.1f} ms,"
            f" digest {digest * 1e3:.1f} ms"
        )


if __name__ == "__main__":
    main()
