"""The built-in model against a plain reading of its file, and how it takes prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from jacobi_ar.model_loaders.errors import CheckpointError, GridError
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import BUILTIN_MODEL, load_image_model
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from .plain_transformer import grid_angles, plain_logits

PREFIX, VOCABULARY = 8, 4096


@pytest.fixture(scope="module")
def weights() -> dict[str, Tensor]:
    return load_file(BUILTIN_MODEL)


@pytest.fixture(scope="module")
def metadata() -> dict[str, str]:
    with safe_open(BUILTIN_MODEL, "pt") as file:
        return file.metadata()


@pytest.fixture(scope="module")
def model() -> ImageModel:
    return load_image_model(BUILTIN_MODEL, device="cpu", dtype=torch.float32)


def plain(weights: dict[str, Tensor], ids: list[int], tokens: Tensor) -> Tensor:
    """Logits of cell 0 and after each token, [1 + N, V]."""
    w = {name: tensor.double() for name, tensor in weights.items()}
    words = torch.tensor(ids + [0] * (PREFIX - len(ids)))
    prompt = w["text_embeddings.weight"][words] + w["text_positions"]
    constant = prompt[words != 0].sum(0) @ w["text_global.weight"].T
    x = torch.cat([prompt, w["tok_embeddings.weight"][tokens]]) + constant
    angles = torch.cat([torch.zeros(PREFIX, 32), grid_angles(16, 16, 64, 100.0)[: len(tokens)]])
    causal = torch.ones(len(x), len(x), dtype=torch.bool).tril()
    return plain_logits(w, x, angles.cos(), angles.sin(), causal)[PREFIX - 1 :]


def logits(model: ImageModel, texts: list[str], tokens: Tensor, guidance: float) -> Tensor:
    target = model.target(model.grids[0], guidance)
    first = target.prefill([model.encode_prompt(text) for text in texts], 64)
    slots = torch.arange(tokens.shape[1]).expand(len(texts), -1)
    visible = torch.arange(tokens.shape[1]) <= slots[..., None]
    return torch.cat([first[:, None], target.forward(tokens, slots, slots, visible)], dim=1)


@pytest.mark.parametrize("guidance", [1.0, 1.5])
def test_logits_equal_a_plain_reading(
    model: ImageModel, weights: dict[str, Tensor], metadata: dict[str, str], guidance: float
) -> None:
    words = json.loads(metadata["words"])
    prompts = {  # text -> its words, and those that guidance compares with
        "Red heart": (["<any>", "red", "heart"], ["<null>"]),
        "noto fox": (["<noto>", "fox"], ["<any>", "fox"]),
        "flag: Japan": (["<flag>", "flag", "japan"], ["<null>"]),
        "": (["<null>"], ["<null>"]),
    }
    tokens = torch.randint(VOCABULARY, (len(prompts), 40), generator=torch.Generator().manual_seed(3))
    got = logits(model, list(prompts), tokens, guidance)
    for row, names in enumerate(prompts.values()):
        conditional, unconditional = (
            plain(weights, [words[name] for name in ids], tokens[row]) for ids in names
        )
        expected = unconditional + guidance * (conditional - unconditional)
        torch.testing.assert_close(got[row].double(), expected, rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize(
    "dtype, error", [(torch.float64, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.01)]
)
def test_other_precisions(model: ImageModel, dtype: torch.dtype, error: float) -> None:
    tokens = torch.randint(VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(3))
    exact = logits(model, ["dog"], tokens, 1.5)
    got = logits(load_image_model(BUILTIN_MODEL, device="cpu", dtype=dtype), ["dog"], tokens, 1.5)
    assert got.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert (got - exact).abs().max() < error * exact.abs().max()


def test_without_a_prompt_guidance_changes_nothing(model: ImageModel) -> None:
    tokens = torch.randint(VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(logits(model, [""], tokens, 1.0), logits(model, [" "], tokens, 3.0))


def test_what_is_ignored_is_said(model: ImageModel) -> None:
    def notes(text: str) -> str:
        return "\n".join(model.encode_prompt(text).notes)

    assert notes("red heart") == ""
    assert notes("red Zeppelinlike heart") == "not in the built-in vocabulary, ignored: zeppelinlike"
    assert "ignored: null" in notes("<null> heart")
    assert "no word of the prompt is known" in notes("zeppelinlike")
    assert "guidance has no effect" in notes("  ")
    long = model.encode_prompt("face " * 9)  # no name, so nothing is chosen from it
    assert long.notes[-1] == "the built-in model reads 7 words, cut off: face, face"
    assert len(long.tensors["ids"]) == PREFIX


def test_what_the_model_offers(model: ImageModel, weights: dict[str, Tensor]) -> None:
    assert [(grid.rows, grid.cols) for grid in model.grids] == [(16, 16)]
    assert (model.vocabulary, model.tokenizer_kind, model.defaults.guidance) == (VOCABULARY, "built-in", 1.5)
    assert model.weight_bytes == 4 * sum(tensor.numel() for tensor in weights.values())
    with pytest.raises(GridError, match="the built-in model does not make grids of 24 x 24"):
        model.grid(24, 24)


def test_damaged_files_are_refused(
    tmp_path: Path, weights: dict[str, Tensor], metadata: dict[str, str]
) -> None:
    file = tmp_path / "odd.safetensors"

    def refusal(tensors: dict[str, Tensor], notes: dict[str, str]) -> str:
        save_file(tensors, file, notes)
        with pytest.raises(CheckpointError) as caught:
            load_image_model(file, device="cpu", dtype=torch.float32)
        assert "odd.safetensors" in str(caught.value)
        return str(caught.value)

    settings = json.loads(metadata["config"])
    del settings["rope_base"]
    assert "rope_base" in refusal(weights, metadata | {"config": json.dumps(settings)})
    assert "metadata" in refusal(weights, metadata | {"words": "no json"})
    renamed = {name.replace("layers.3.ffn_norm", "layers.3.norm"): t for name, t in weights.items()}
    assert "layers.3.ffn_norm.weight" in refusal(renamed, metadata)
    cut = weights | {"text_positions": weights["text_positions"][:5].clone()}
    assert "text_positions is (5, 256), expected (8, 256)" in refusal(cut, metadata)
