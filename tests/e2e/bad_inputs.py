# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The bad inputs of test_bad_input.py: what is broken, the flags, and what the message must say."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.tiny import make_model

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"


@dataclass
class Place:
    """A good input: model folder, question file, run folder that does not exist."""

    root: Path

    @property
    def model(self) -> Path:
        return self.root / "model"

    @property
    def data(self) -> Path:
        return self.root / "questions.jsonl"

    @property
    def run(self) -> Path:
        return self.root / "run"

    def argv(self, *flags: str) -> list[str]:
        """A command line that trains; ``flags`` come last and so win."""
        argv = ["train", "--hf-checkpoint", str(self.model), "--prompt-data", str(self.data)]
        argv += ["--run-dir", str(self.run), "--verifier", "coin_flip", "--train-iters", "1"]
        argv += ["--rollout-batch-size", "4", "--n-samples-per-prompt", "2"]
        argv += ["--rollout-max-prompt-len", "64", "--rollout-max-response-len", "4"]
        argv += ["--critic-warmup-iters", "0", "--no-export-hf", "--no-tensorboard"]
        return [*argv, *(flag.format(root=self.root) for flag in flags)]

    def rows(self, *rows: dict[str, Any]) -> None:
        self.data.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def edit_config(self, **changes: Any) -> None:
        """Change fields of config.json; None removes one."""
        path = self.model / "config.json"
        config = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))

    def edit_weights(self, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
        tensors = load_file(self.model / WEIGHTS)
        change(tensors)
        save_file(tensors, self.model / WEIGHTS, metadata={"format": "pt"})

    def snapshot(self) -> dict[str, str]:
        """Every file and folder with a digest of what it holds."""
        return {
            str(path.relative_to(self.root)): (
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            )
            for path in self.root.rglob("*")
        }


@dataclass(frozen=True)
class Bad:
    """One bad input: what is broken, the flags, and what the message must say."""

    says: tuple[str, ...]
    flags: tuple[str, ...] = ()
    prepare: Callable[[Place], object] = field(default=lambda place: None)


def truncate(place: Place) -> None:
    whole = (place.model / WEIGHTS).read_bytes()
    (place.model / WEIGHTS).write_bytes(whole[: len(whole) // 2])


def _corrupt_header(place: Place) -> None:
    whole = bytearray((place.model / WEIGHTS).read_bytes())
    whole[8:40] = b"\xff" * 32
    (place.model / WEIGHTS).write_bytes(bytes(whole))


def split_weights(place: Place, *, lose: str | None = None) -> None:
    """The weights in two files and an index; ``lose`` one of the files."""
    tensors = load_file(place.model / WEIGHTS)
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({n: tensors[n] for n in part}, place.model / file, metadata={"format": "pt"})
    places = {name: file for file, part in parts.items() for name in part}
    (place.model / INDEX).write_text(json.dumps({"weight_map": places}))
    (place.model / WEIGHTS).unlink()
    if lose is not None:
        (place.model / lose).unlink()


def _wrong_index(place: Place) -> None:
    split_weights(place)
    index = json.loads((place.model / INDEX).read_text())
    index["weight_map"]["model.norm.weight"] = "a.safetensors"
    file = "b.safetensors"
    tensors = load_file(place.model / "a.safetensors")
    if "model.norm.weight" in tensors:
        index["weight_map"]["model.norm.weight"] = file
    (place.model / INDEX).write_text(json.dumps(index))


def _wrong_shape(tensors: dict[str, torch.Tensor]) -> None:
    name = "model.layers.1.mlp.down_proj.weight"
    tensors[name] = tensors[name][:, :-1].contiguous()


def put_nan(tensors: dict[str, torch.Tensor]) -> None:
    tensors["model.layers.3.mlp.down_proj.weight"][3, -1] = float("nan")


def _smaller_vocabulary(place: Place) -> None:
    name = "model.embed_tokens.weight"
    place.edit_config(vocab_size=257)
    place.edit_weights(lambda t: t.update({name: t[name][:257].clone()}))


def _no_tokenizer(place: Place) -> None:
    for path in place.model.glob("tokenizer*"):
        path.unlink()


def _no_template(place: Place) -> None:
    (place.model / "chat_template.jinja").unlink()


def occupy(place: Place) -> None:
    place.run.mkdir()
    (place.run / "metrics.jsonl").write_text('{"step": 0}\n')


def _yaml(text: str) -> Callable[[Place], object]:
    return lambda place: (place.root / "run.yaml").write_text(text)


def _questions(**changes: Any) -> Callable[[Place], object]:
    row = {"prompt": "1 + 1?", "answer": "2"}
    first = {k: v for k, v in {**row, **changes}.items() if v != "absent"}
    return lambda place: place.rows(*({"id": str(i), **first} for i in range(8)))


SETTINGS = {
    "misspelt flag": Bad(
        ("--lam-crtic is no flag", "did you mean '--lam-critic'?"), ("--lam-crtic", "1")
    ),
    "misspelt key": Bad(
        ("run.yaml: optimizer.lrr is no setting", "did you mean 'lr'?"),
        ("--config", "{root}/run.yaml"),
        _yaml("optimizer:\n  lrr: 1e-6\n"),
    ),
    "type of a key": Bad(
        ("run.yaml: lr", "fast"), ("--config", "{root}/run.yaml"), _yaml("lr: fast\n")
    ),
    "value of no type": Bad(("--lr", "fast"), ("--lr", "fast")),
    "tp over heads": Bad(
        ("--tensor-model-parallel-size 3 does not divide the model's 4 attention heads", "1, 2"),
        ("--tensor-model-parallel-size", "3"),
    ),
    "batch": Bad(
        ("--global-batch-size 3 does not divide the 8 responses", "use a divisor of 8"),
        ("--global-batch-size", "3"),
    ),
    "too few ranks": Bad(
        ("world size 1 is no multiple of --tensor-model-parallel-size 2", "start a multiple of 4"),
        ("--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2"),
    ),
    "critic of an algorithm without one": Bad(
        ("--critic-hf-checkpoint {root}/model has no effect", "--algorithm grpo trains no critic"),
        ("--algorithm", "grpo", "--critic-hf-checkpoint", "{root}/model"),
    ),
    "a group of one": Bad(
        ("--n-samples-per-prompt 1: --advantage-estimator grpo compares", "give at least 2"),
        ("--algorithm", "gspo", "--n-samples-per-prompt", "1"),
    ),
    "bank of a rule without one": Bad(
        ("--vcrl-bank-size 8 has no effect with --sampling dynamic", "--sampling vcrl"),
        ("--algorithm", "dapo", "--vcrl-bank-size", "8"),
    ),
    "misspelt estimator": Bad(
        ("--advantage-estimator gea", "did you mean 'gae'?"), ("--advantage-estimator", "gea")
    ),
    "top-p": Bad(
        ("--rollout-top-p 0.7 must be exactly 1", "--eval-top-p"), ("--rollout-top-p", "0.7")
    ),
    "context": Bad(
        ("--rollout-max-prompt-len 64 plus --rollout-max-response-len 500", "256 positions"),
        ("--rollout-max-response-len", "500"),
    ),
    "verifier": Bad(("--verifier mat", "did you mean 'math'?"), ("--verifier", "mat")),
    "engine": Bad(
        ("--rollout-engine transformer:", "did you mean 'transformers'?", "available:"),
        ("--rollout-engine", "transformer"),
    ),
    "setting of another engine": Bad(
        ("--rollout-engine transformers:", "has no setting 'kv_cache_mb'"),
        ("--rollout-kv-cache-mb", "64"),
    ),
    "batch over data": Bad(
        ("--rollout-batch-size 16 is more than the 7 questions", "lower it"),
        ("--rollout-batch-size", "16"),
    ),
}

MODELS = {
    "no weights": Bad(
        ("--hf-checkpoint", "no *.safetensors", "download the weights"),
        prepare=lambda p: (p.model / WEIGHTS).unlink(),
    ),
    "truncated": Bad(
        (f"model/{WEIGHTS} is truncated", "bytes", "download the file again"), prepare=truncate
    ),
    "empty": Bad(
        (f"model/{WEIGHTS} (0 bytes) is truncated", "download the file again"),
        prepare=lambda p: (p.model / WEIGHTS).write_bytes(b""),
    ),
    "corrupt header": Bad(
        (f"model/{WEIGHTS} has a damaged header", "download the file again"),
        prepare=_corrupt_header,
    ),
    "git lfs pointer": Bad(
        (f"model/{WEIGHTS} is a Git LFS pointer", "git lfs pull"),
        prepare=lambda p: (p.model / WEIGHTS).write_text(
            "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
        ),
    ),
    "missing shard": Bad(
        (f"model/{INDEX} names files that are missing: b.safetensors", "download"),
        prepare=lambda p: split_weights(p, lose="b.safetensors"),
    ),
    "no index": Bad(
        ("model has a.safetensors (and 1 more)", "download the index too"),
        prepare=lambda p: (split_weights(p), (p.model / INDEX).unlink()),
    ),
    "damaged index": Bad(
        (f"model/{INDEX} is damaged", "weight_map"),
        prepare=lambda p: (split_weights(p), (p.model / INDEX).write_text("{")),
    ),
    "wrong index": Bad(
        ("lacks the tensor 'model.norm.weight', which", "download both"), prepare=_wrong_index
    ),
    "missing tensor": Bad(
        ("lack 'model.norm.weight'", "download the model again"),
        prepare=lambda p: p.edit_weights(lambda t: t.pop("model.norm.weight")),
    ),
    "wrong shape": Bad(
        (
            "'model.layers.1.mlp.down_proj.weight' has shape [32, 47]",
            "config.json asks for [32, 48]",
            "of one model",
        ),
        prepare=lambda p: p.edit_weights(_wrong_shape),
    ),
    "quantised": Bad(
        ("'model.norm.weight' is of type I8", "cannot be trained"),
        prepare=lambda p: p.edit_weights(
            lambda t: t.update({"model.norm.weight": torch.zeros(32, dtype=torch.int8)})
        ),
    ),
    "more layers than config.json": Bad(
        ("hold 'model.layers.2.", "which config.json knows nothing of"),
        prepare=lambda p: p.edit_config(num_hidden_layers=2, layer_types=None),
    ),
    "nan in weights": Bad(
        ("NaN or infinity in model.layers.3.mlp.down_proj.weight", "cannot be trained"),
        prepare=lambda p: p.edit_weights(put_nan),
    ),
    "unknown architecture": Bad(
        ("--hf-checkpoint", "model_type 'mamba' is not supported", "supported: llama, qwen2"),
        prepare=lambda p: p.edit_config(model_type="mamba"),
    ),
    "fields of another architecture": Bad(
        ("config.json: num_hidden_layers is None", "this is a 'gpt2'"),
        prepare=lambda p: p.edit_config(model_type="gpt2", num_hidden_layers=None),
    ),
    "lacking field": Bad(
        (
            "model/config.json lacks the field 'max_position_embeddings'",
            "download the file",
        ),
        prepare=lambda p: p.edit_config(max_position_embeddings=None),
    ),
    "config.json no json": Bad(
        ("--hf-checkpoint", "config.json is not valid JSON", "download it again"),
        prepare=lambda p: (p.model / "config.json").write_text("{"),
    ),
    "no tokenizer": Bad(
        ("--hf-checkpoint", "has no tokenizer", "tokenizer.json"), prepare=_no_tokenizer
    ),
    "broken tokenizer": Bad(
        ("--hf-checkpoint", "its tokenizer cannot be read", "tokenizer.json"),
        prepare=lambda p: (p.model / "tokenizer.json").write_text("{"),
    ),
    "tokenizer of another model": Bad(
        ("--hf-checkpoint", "its tokenizer gives the id", "its model has 257 embeddings"),
        prepare=_smaller_vocabulary,
    ),
    "no chat template": Bad(
        ("--hf-checkpoint", "no chat template", "--no-apply-chat-template"), prepare=_no_template
    ),
}

DATA = {
    "no file": Bad(
        ("--prompt-data", "is no file on this machine"), prepare=lambda p: p.data.unlink()
    ),
    "empty": Bad(
        ("--prompt-data", "questions.jsonl: has no rows", "give a file"),
        prepare=lambda p: p.data.write_text(""),
    ),
    "no answer column": Bad(
        (
            "--prompt-data: ",
            "questions.jsonl, row 0 (line 1): answer None must be",
            "column called",
            "label",
        ),
        prepare=_questions(answer="absent"),
    ),
    "null answer": Bad(
        (
            "--prompt-data: ",
            "questions.jsonl, row 0 (line 1): answer None must be",
            "remove the row",
        ),
        prepare=_questions(answer=None),
    ),
    "blank answer": Bad(
        (
            "--prompt-data: ",
            "questions.jsonl, row 0 (line 1): answer ' ' is empty",
            "remove the row",
        ),
        prepare=_questions(answer=" "),
    ),
    "no json": Bad(
        (
            "--prompt-data: ",
            "questions.jsonl, row 0 (line 1): not valid JSON",
            "one complete JSON object a line",
        ),
        prepare=lambda p: p.data.write_text("1 + 1 = 2\n"),
    ),
    "two answers": Bad(
        ("rows 0 and 1: id 'a' has two answers, '2' and '3'", "--conflicts first or drop"),
        ("--conflicts", "error"),
        lambda p: p.rows(
            {"id": "a", "prompt": "1 + 1?", "answer": "2"},
            {"id": "a", "prompt": "1 + 1?", "answer": "3"},
        ),
    ),
    "all prompts too long": Bad(
        ("--rollout-max-prompt-len 2 drops all 7 prompts", "raise it"),
        ("--rollout-max-prompt-len", "2"),
    ),
    "evaluation set": Bad(
        ("--eval-prompt-data", "absent.jsonl", "is no file on this machine"),
        ("--eval-prompt-data", "{root}/absent.jsonl"),
    ),
    "slice": Bad(
        ("--prompt-data", "questions.jsonl@[0-5]: cannot read the row range", "FILE@[START:STOP]"),
        ("--prompt-data", "{root}/questions.jsonl@[0-5]"),
    ),
    "slice of an evaluation set": Bad(
        (
            "--eval-prompt-data quiz={root}/questions.jsonl@[0-5]: ",
            "questions.jsonl@[0-5]: cannot read the row range",
            "FILE@[START:STOP]",
        ),
        ("--eval-prompt-data", "quiz={root}/questions.jsonl@[0-5]"),
    ),
    "empty slice of an evaluation set": Bad(
        ("--eval-prompt-data quiz=", "the row range is empty; the file has 7 rows"),
        ("--eval-prompt-data", "quiz={root}/questions.jsonl@[7:]"),
    ),
}

FOLDERS = {
    "below a file": Bad(
        ("--run-dir", "questions.jsonl, which is a file", "give a folder"),
        ("--run-dir", "{root}/questions.jsonl/run"),
    ),
    "a file": Bad(("--run-dir", "is a file"), ("--run-dir", "{root}/questions.jsonl")),
    "occupied": Bad(("--run-dir", "already holds a run", "--load {root}/run"), prepare=occupy),
    "nothing to load": Bad(
        ("--load", "no complete checkpoint there", "that has saved one"), ("--load", "{root}/model")
    ),
}

LOADED = {
    "of another model": Bad(
        ("--load", "is of another model", "family qwen2 instead of llama", "--hf-checkpoint"),
        prepare=lambda p: (shutil.rmtree(p.model), make_model(p.model, "llama-untied")),
    ),
    "of other questions": Bad(
        ("--load", "cursor state has size 7, this run has 8", "the same prompt file"),
        prepare=_questions(),
    ),
    "nothing left to do": Bad(
        ("--train-iters 1 is already reached", "raise it"), ("--train-iters", "1")
    ),
    "damaged": Bad(
        ("--load", "run.json is damaged", "earlier checkpoint"),
        ("--load", "{root}/old"),
        lambda p: [f.write_text("{") for f in (p.root / "old").rglob("run.json")],
    ),
    "into the folder of a third run": Bad(
        ("--run-dir", "already holds a run, and --load", "is another one"), prepare=occupy
    ),
}
