"""Lumina-mGPT and Anole in both layouts against transformers' Chameleon (small random weights)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.checkpoint import Checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError, GridError
from jacobi_ar.model_loaders.families.chameleon import class_shapes
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import load_image_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from .tiny_chameleon import (
    CODES,
    FIRST,
    HEAD_DIM,
    IMAGE_NAMES,
    ROW_END,
    SPECIAL,
    TOKENS,
    WORD_IDS,
    make_reference,
    save,
)
from .tiny_tokenizer import write_tokenizer
from .token_prompt_check import assert_same_logits, stream_logits

if TYPE_CHECKING:
    from transformers import ChameleonForConditionalGeneration

SQUARE = TokenGrid(4, 4, (ROW_END,))


def load(path: Path, dtype: torch.dtype = torch.float32) -> ImageModel:
    return load_image_model(path, device="cpu", dtype=dtype)


def words(text: str) -> list[int]:
    return [WORD_IDS[word] for word in text.split()]


REQUEST = "Generate an image of {} according to the following prompt: {}"
TEXTS = ["a red cat", "a cat", "a red red red red red red red red red red red red red cat"]


@pytest.mark.parametrize(
    ("layout", "groups", "swin"),
    [
        ("lumina", (1, 1), False),
        ("lumina", (3, 1), True),
        ("lumina", (2, 2), True),
        ("anole", (6, 2), False),
        ("meta", (1, 1), False),
        ("meta, fused", (1, 1), True),
    ],
)
def test_logits_are_those_of_transformers(
    layout: str, groups: tuple[int, int], swin: bool, tmp_path: Path
) -> None:
    reference = make_reference(swin)
    model = load(save(reference, tmp_path, layout, groups))
    lumina = layout == "lumina"
    assert model.family == ("Lumina-mGPT" if lumina else "Anole")
    grid = SQUARE if lumina else TokenGrid(4, 4)
    prompts = [model.encode_prompt(text) for text in TEXTS]
    rows = model.transformer.prompt_ids(prompts, grid, guided=True)
    for row, text in zip(rows[:3], TEXTS, strict=True):
        request = REQUEST.format("64x64", text) if lumina else text
        assert row == [0, *words(request), 70, 69] + ([74, 74] if lumina else [])
    assert rows[3:] == ([[69, 74, 74]] if lumina else [[0, 69]]) * 3
    head = reference.lm_head.weight[FIRST : FIRST + CODES]
    assert_same_logits(model, grid, TEXTS, stream_logits(reference.model, head, FIRST), 4.0)


@pytest.fixture(scope="module")
def reference() -> ChameleonForConditionalGeneration:
    return make_reference(swin=False)


def test_the_header_says_height_before_width(
    reference: ChameleonForConditionalGeneration, tmp_path: Path
) -> None:
    model = load(save(reference, tmp_path))
    prompts = [model.encode_prompt("a cat")]
    for rows, cols, size, header in ((4, 6, "96x64", [74, 75]), (6, 4, "64x96", [75, 74])):
        conditional, unconditional = model.transformer.prompt_ids(
            prompts, TokenGrid(rows, cols, (ROW_END,)), True
        )
        assert conditional == [0, *words(REQUEST.format(size, "a cat")), 70, 69, *header]
        assert unconditional == [69, *header]


def test_sizes_are_those_that_the_models_were_trained_on() -> None:
    shapes = {side: list(class_shapes(side)) for side in (512, 768, 1024)}
    assert {side: len(set(found)) for side, found in shapes.items()} == {512: 49, 768: 73, 1024: 97}
    for side, found in shapes.items():
        assert (side // 16, side // 16) in found
        for rows, cols in found:
            assert rows % 2 == cols % 2 == 0 and rows * cols <= (side // 16) ** 2
            assert max(rows, cols) <= 4 * min(rows, cols) and (cols, rows) in found


@pytest.mark.parametrize(("positions", "side"), [(4096, 48), (4400, 64)])
def test_what_lumina_offers(
    positions: int, side: int, reference: ChameleonForConditionalGeneration, tmp_path: Path
) -> None:
    folder = save(reference, tmp_path)
    config = json.loads((folder / "config.json").read_text()) | {"max_position_embeddings": positions}
    (folder / "config.json").write_text(json.dumps(config))
    model = load(folder)
    assert model.name == "Lumina-mGPT (2 layers of 48)" and model.tokenizer_kind == "chameleon"
    assert model.vocabulary == CODES
    assert model.grids[0] == TokenGrid(side, side, (ROW_END,))
    assert {(32, 32), (48, 48), (64, 64)} == {(g.rows, g.cols) for g in model.grids[:3]}
    defaults = model.defaults
    assert (defaults.guidance, defaults.top_k, defaults.temperature, defaults.top_p) == (4.0, 2000, 1.0, 1.0)
    assert f"{side * 16} x {side * 16} is taken" in model.encode_prompt("a cat").notes[0]
    assert model.grid(24, 96).cols == 96
    with pytest.raises(GridError, match=r"33 x 33 tokens; of the \d+ that it makes, the nearest are 32 x 32"):
        model.grid(33, 33)


@pytest.mark.parametrize("layout", ["anole", "meta"])
def test_what_anole_offers(layout: str, reference: ChameleonForConditionalGeneration, tmp_path: Path) -> None:
    model = load(save(reference, tmp_path, layout, (1, 1) if layout == "meta" else (6, 2)))
    assert model.name.startswith("Anole (") and model.grids == [TokenGrid(32, 32)]
    defaults = model.defaults
    assert (defaults.guidance, defaults.top_k, defaults.temperature, defaults.top_p) == (3.0, 0, 0.7, 0.9)
    notes = model.encode_prompt("a cat").notes
    assert "temperature 0.7 and top-p 0.9" in notes[-1]
    assert ("plain Chameleon" in "".join(notes)) == (layout == "meta")


def test_plain_chameleon_is_refused_with_the_reason(
    reference: ChameleonForConditionalGeneration, tmp_path: Path
) -> None:
    folder = save(reference, tmp_path, "anole", (6, 2))
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: t for name, t in weights.items() if ".decoder." not in name}, folder / "model.safetensors"
    )
    with pytest.raises(CheckpointError, match=r"plain Chameleon.*without the ability to draw.*Anole"):
        load(folder)


def test_only_the_rows_of_image_tokens_are_read(
    reference: ChameleonForConditionalGeneration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read, asked = save(reference, tmp_path, "anole", (6, 2)), Checkpoint.read, {}

    def noted(self: Checkpoint, name: str, rows: tuple[int, int] | None = None) -> Tensor:
        asked[name] = rows
        return read(self, name, rows)

    monkeypatch.setattr(Checkpoint, "read", noted)
    model = load(folder)
    assert asked.pop("lm_head.weight") == (FIRST, FIRST + CODES)
    assert set(asked.values()) == {None} and not [name for name in asked if "vqmodel" in name]
    assert model.transformer.output.weight.shape == (CODES, 48)


def test_files_that_do_not_fit(reference: ChameleonForConditionalGeneration, tmp_path: Path) -> None:
    folder = save(reference, tmp_path)
    weights = load_file(folder / "model.safetensors")

    def refusal(changed: dict[str, Tensor]) -> str:
        save_file(changed, folder / "model.safetensors")
        with pytest.raises(CheckpointError) as caught:
            load(folder)
        return str(caught.value)

    name = "model.layers.1.self_attn.k_norm.bias"
    assert name in refusal({n: t for n, t in weights.items() if n != name})
    norm = "model.layers.1.self_attn.q_norm.weight"
    message = refusal(weights | {norm: torch.zeros(4, HEAD_DIM)})  # 4 groups of 6 heads
    assert "another shape" in message and norm in message
    short = weights | {"lm_head.weight": weights["lm_head.weight"][:30].clone()}
    assert "lm_head.weight is (30, 48), expected (64, 48)" in refusal(short)
    assert "not known: extra" in refusal(weights | {"extra": torch.zeros(1)})


def test_tokenizers_that_are_missing_or_others(
    reference: ChameleonForConditionalGeneration, tmp_path: Path
) -> None:
    folder = save(reference, tmp_path)
    tokenizer = folder / "tokenizer.json"
    swapped = SPECIAL | {IMAGE_NAMES[7]: FIRST + 8, IMAGE_NAMES[8]: FIRST + 7}
    write_tokenizer(tokenizer, WORD_IDS, swapped, TOKENS)
    with pytest.raises(CheckpointError, match="image tokens do not lie in the order"):
        load(folder)
    nameless = {token: number for token, number in SPECIAL.items() if not token.startswith("IMGIMG")}
    write_tokenizer(tokenizer, WORD_IDS, nameless, TOKENS)
    with pytest.raises(CheckpointError, match="it has no token IMGIMGAZ"):
        load(folder)
    tokenizer.unlink()
    with pytest.raises(CheckpointError, match=r"no tokenizer.json or text_tokenizer.json in .*Lumina-mGPT"):
        load(folder)
