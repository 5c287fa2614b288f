"""Lumina-mGPT 2.0 against transformers' Chameleon with its vocabulary (small random weights, real ids)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.load import load_image_model
from jacobi_ar.model_loaders.token_prompts import TokenPromptModel
from safetensors.torch import save_file

from .reference import randomised
from .tiny_tokenizer import write_tokenizer
from .token_prompt_check import assert_same_logits, stream_logits
from .transformers_classes import from_transformers

if TYPE_CHECKING:
    from transformers import ChameleonForConditionalGeneration

TOKENS, FIRST, CODES = 171385, 155000, 16384
TEXT = "Generate an image of 32x32 32x64 768x768 according to the following prompt: a red cat"
WORD_IDS = {word: 10 + i for i, word in enumerate(TEXT.split())}
NAMES = {"<|endoftext|>": 151643, "<|im_end|>": 151645, "<racm3:break>": 151665, "<eoss>": 151666}
NAMES |= {"<reserved08706>": 151669, "<reserved08799>": 151670}
NAMES |= {f"<reserved{8800 + n:05d}>": 151671 + n for n in range(40)}
GRID = TokenGrid(4, 4, (151670,))


@pytest.fixture(scope="module")
def reference() -> ChameleonForConditionalGeneration:
    vq = {"embed_dim": 8, "num_embeddings": 8, "latent_channels": 8, "resolution": 32, "base_channels": 32}
    configuration, model = from_transformers("ChameleonConfig", "ChameleonForConditionalGeneration")
    config = configuration(
        vocab_size=TOKENS,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=3,
        vq_config=vq | {"channel_multiplier": [1, 1], "num_res_blocks": 1},
        vocabulary_map={"IMGIMGAZ": 4, "<image>": 5},
    )
    return randomised(model(config))


@pytest.fixture(scope="module")
def folder(reference: ChameleonForConditionalGeneration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("Lumina-mGPT-2.0")
    weights = {
        name: tensor.contiguous().clone()
        for name, tensor in reference.state_dict().items()
        if ".vqmodel." not in name
    }
    config = json.loads(reference.config.to_json_string())
    config.pop("vocabulary_map")
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder / "tokenizer.json", WORD_IDS, NAMES, TOKENS - CODES)
    settings = {"bos_token": None, "eos_token": {"content": "<|im_end|>"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    save_file(weights, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> TokenPromptModel:
    return load_image_model(folder, device="cpu", dtype=torch.float32)


def test_logits_are_those_of_transformers(
    reference: ChameleonForConditionalGeneration, model: TokenPromptModel
) -> None:
    head = reference.lm_head.weight[FIRST : FIRST + CODES]
    assert_same_logits(model, GRID, ["a red cat", "a cat"], stream_logits(reference.model, head, FIRST), 4.0)


def test_prompts_have_the_published_ids(model: TokenPromptModel) -> None:
    prompts = [model.encode_prompt("a red cat")]
    shapes = {"32x32": (4, 4, [151672, 151672]), "32x64": (8, 4, [151673, 151672])}
    shapes["768x768"] = (96, 96, [151695, 151695])
    for size, (rows, cols, header) in shapes.items():
        request = f"Generate an image of {size} according to the following prompt: a red cat"
        words = [WORD_IDS[word] for word in request.split()]
        conditional, unconditional = model.transformer.prompt_ids(
            prompts, TokenGrid(rows, cols, (151670,)), True
        )
        assert conditional == [151645, *words, 151669, 151665, *header]
        assert unconditional == [151665, *header]


def test_what_the_model_offers(model: TokenPromptModel) -> None:
    assert model.name == "Lumina-mGPT 2.0 (2 layers of 24)"
    assert (model.family, model.tokenizer_kind, model.vocabulary) == (
        "Lumina-mGPT 2.0",
        "movq-lumina2",
        CODES,
    )
    shapes = [(g.rows, g.cols) for g in model.grids]
    assert shapes[:2] == [(96, 96), (64, 64)] and {g.row_end for g in model.grids} == {(151670,)}
    assert all(rows % 4 == cols % 4 == 0 and rows * cols <= 96 * 96 for rows, cols in shapes)
    assert (model.grids[0].length, (192, 48) in shapes) == (96 * 97 - 1, True)
    defaults = model.defaults
    assert (defaults.guidance, defaults.top_k, defaults.temperature, defaults.top_p) == (4.0, 4096, 1.0, 1.0)


def test_what_is_missing_beside_the_weights(folder: Path, tmp_path: Path) -> None:
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / file).symlink_to(folder / file)

    def refusal() -> str:
        with pytest.raises(CheckpointError) as caught:
            load_image_model(tmp_path, device="cpu", dtype=torch.float32)
        return str(caught.value)

    assert "tokenizer_config.json is missing" in (message := refusal())
    assert "https://huggingface.co/Alpha-VLLM/Lumina-mGPT-2.0" in message
    for content in ("{", "[]"):
        (tmp_path / "tokenizer_config.json").write_text(content)
        assert "damaged" in refusal()
    (tmp_path / "tokenizer_config.json").write_text("{}")
    assert "neither" in refusal()
    (tmp_path / "tokenizer.json").unlink()
    assert "no tokenizer.json in" in refusal()
