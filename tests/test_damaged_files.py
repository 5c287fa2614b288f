"""Whatever is wrong with a file, loading ends in one sentence, or in a model: never in another exception,
never in more memory than the files could need, and never in a wait.

JACOBI_AR_DAMAGED_FILES=2000 makes so many damaged files of each kind, instead of a few.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.float8 import float8_operations
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from jacobi_ar.model_loaders.load_tokenizer import BUILTIN_TOKENIZER, load_image_tokenizer
from jacobi_ar.model_loaders.look import look
from jacobi_ar.tests.damage import Damage, sharded
from jacobi_ar.tests.toy_families import GOLDEN, TOYS
from safetensors.torch import load_file

MANY = int(os.environ.get("JACOBI_AR_DAMAGED_FILES", 12))
LONGEST = 20.0  # seconds that a tiny file may take, on a machine that is busy with other things
FLOAT8 = float8_operations(torch.nn)
MODELS = {name: build for toys in TOYS.values() for name, build in toys.items()}
TOKENIZERS = {
    "built-in": BUILTIN_TOKENIZER,
    "LlamaGen": GOLDEN / "llamagen_vq_tiny.pt",
    "Chameleon": GOLDEN / "chameleon_vqgan_tiny.ckpt",
    "MoVQ": GOLDEN / "movqgan_decoder_tiny.ckpt",
}


def load_model(path: Path) -> Any:
    model = load_image_model(path, device="cpu", dtype=torch.bfloat16, operations=FLOAT8)
    assert all(not weight.is_meta for weight in model.transformer.parameters())
    return model


def load_tokenizer(path: Path) -> Any:
    return load_image_tokenizer(path, device="cpu")


def outcomes(good: Path, scratch: Path, load: Callable[[Path], Any], seed: int, many: int = MANY) -> int:
    """How many damaged copies were refused; anything but a refusal or a model fails the test."""
    damage, refused = Damage(good, scratch, seed), 0
    load(good)
    for _ in range(many):
        path, what = damage.next()
        started = time.monotonic()
        try:
            load(path)
        except CheckpointError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) > 20, f"{what}: no sentence: {error}"
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        assert time.monotonic() - started < LONGEST, f"{what} took too long"
    return refused


@pytest.mark.filterwarnings("ignore")  # torch warns of odd protocols and types on its way
@pytest.mark.parametrize("name", MODELS)
def test_models(tmp_path: Path, name: str) -> None:
    good = MODELS[name](tmp_path / "good")
    (tmp_path / "scratch").mkdir()
    assert outcomes(good, tmp_path / "scratch", load_model, seed=1) > MANY // 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TOKENIZERS)
def test_image_tokenizers(tmp_path: Path, name: str) -> None:
    assert outcomes(TOKENIZERS[name], tmp_path, load_tokenizer, seed=2) > MANY // 4


def test_shards_and_their_index(tmp_path: Path) -> None:
    good = MODELS["Lumina-mGPT"](tmp_path / "good")
    sharded(load_file(good / "model.safetensors"), good)
    (tmp_path / "scratch").mkdir()
    assert outcomes(good, tmp_path / "scratch", load_model, seed=3, many=2 * MANY) > MANY // 2


def test_another_model_of_the_same_family(tmp_path: Path) -> None:
    """A config.json, or a part, of another size."""
    good = MODELS["Emu3"](tmp_path / "good")
    config = json.loads((good / "config.json").read_text())
    (good / "config.json").write_text(json.dumps(config | {"num_attention_heads": 3}))
    with pytest.raises(CheckpointError, match="3 heads, as config.json says, do not divide"):
        load_model(good)
    (good / "config.json").write_text(json.dumps(config))
    weights = load_file(good / "model.safetensors")
    name = "model.layers.1.mlp.down_proj.weight"
    sharded(weights | {name: torch.cat([weights[name]] * 2, 1)}, good)
    with pytest.raises(CheckpointError, match=f"another shape: {name}"):
        load_model(good)
    shutil.copy(MODELS["Janus"](tmp_path / "other") / "tokenizer.json", good / "tokenizer.json")
    with pytest.raises(CheckpointError, match=r"tokenizer.*(no token|does not belong)"):
        load_model(good)


def test_weights_that_were_compressed_elsewhere_are_said_to_be_so(tmp_path: Path) -> None:
    good = MODELS["Emu3"](tmp_path / "good")
    weights = load_file(good / "model.safetensors")
    name = "model.layers.0.mlp.down_proj.weight"
    sharded(weights | {name: torch.zeros(weights[name].shape, dtype=torch.int8)}, good)
    with pytest.raises(CheckpointError, match=f"hold no fractions.*{name} is torch.int8"):
        load_model(good)


@pytest.mark.parametrize("claim", [[1 << 40], [1 << 20, 1 << 20], [1 << 62, 4]])
def test_a_claim_of_many_bytes_takes_no_memory(tmp_path: Path, claim: list[int]) -> None:
    """A header may say anything; the file is as large as it is."""
    size = 4
    for side in claim:
        size *= side
    header = json.dumps({"w": {"dtype": "F32", "shape": claim, "data_offsets": [0, size]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    tracemalloc.start()
    seen = look(tmp_path / "a.safetensors")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(seen, str) and "cut off or damaged" in seen
    assert peak < 2**22


def test_the_built_in_model_is_good() -> None:
    load_model(BUILTIN_MODEL)
