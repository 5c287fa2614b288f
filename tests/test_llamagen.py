"""LlamaGen checkpoints against what the official classes compute from them (small random weights)."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.errors import CheckpointError, PromptError
from jacobi_ar.model_loaders.guessed_grid import GuessedGrid, grid_hint
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.image_transformer import Prompt
from jacobi_ar.model_loaders.load import load_image_model
from safetensors.torch import load_file, save_file
from torch import Tensor

GOLDEN = Path(__file__).parent / "golden"
GRID = TokenGrid(4, 4)
GUIDANCE = {"c2i": 4.0, "t2i": 7.5}
KINDS = pytest.mark.parametrize("kind", ["c2i", "t2i"])


def load(path: Path) -> ImageModel:
    return load_image_model(path, device="cpu", dtype=torch.float32)


def file_of(kind: str) -> Path:
    return GOLDEN / f"llamagen_{kind}_tiny.pt"


def weights_of(kind: str) -> dict[str, Tensor]:
    return torch.load(file_of(kind), weights_only=True)["model"]


def expected_of(kind: str) -> dict[str, Tensor]:
    return load_file(GOLDEN / f"llamagen_{kind}_tiny_expected.safetensors")


def prompts_of(model: ImageModel, kind: str) -> list[Prompt]:
    expected = expected_of(kind)
    if kind == "c2i":
        return [model.encode_prompt(str(label)) for label in expected["labels"].tolist()]
    captions = zip(expected["t5_features_right_padded"], expected["t5_mask"].bool(), strict=True)
    return [Prompt(model.family, "", {"features": features[mask]}) for features, mask in captions]


def logits(model: ImageModel, prompts: list[Prompt], tokens: Tensor, guidance: float) -> Tensor:
    """Logits of every cell given the tokens before it: [B, 16, V]."""
    target = model.target(GRID, guidance)
    first = target.prefill(prompts, 16)
    slots = torch.arange(15).expand(len(tokens), -1)
    visible = torch.arange(15) <= slots[..., None]
    return torch.cat([first[:, None], target.forward(tokens[:, :15], slots, slots, visible)], dim=1)


@KINDS
def test_logits_of_both_halves(kind: str) -> None:
    model, expected = load(file_of(kind)), expected_of(kind)
    prompts, tokens = prompts_of(model, kind), expected["teacher_tokens"]
    conditional = logits(model, prompts, tokens, 1.0)
    unconditional = logits(model, prompts, tokens, 0.0)
    torch.testing.assert_close(conditional, expected["cond_logits"], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(unconditional, expected["uncond_logits"], rtol=1e-5, atol=1e-5)


@KINDS
def test_greedy_tokens_with_guidance(kind: str) -> None:
    model = load(file_of(kind))
    target = model.target(GRID, GUIDANCE[kind])
    tokens = [target.prefill(prompts_of(model, kind), 16).argmax(-1, keepdim=True)]  # each [B, 1]
    for cell in range(15):
        slots = torch.full((2, 1), cell)
        seen = torch.ones(2, 1, cell + 1, dtype=torch.bool)
        tokens.append(target.forward(tokens[-1], slots, slots, seen).argmax(-1))
    assert torch.equal(torch.cat(tokens, dim=1), expected_of(kind)[f"greedy_ids_cfg{GUIDANCE[kind]}"])


@KINDS
def test_safetensors_with_wrapper_prefixes_and_leftovers(kind: str, tmp_path: Path) -> None:
    weights = {f"module._orig_mod.{name}": tensor for name, tensor in weights_of(kind).items()}
    weights |= {"freqs_cis": torch.zeros(3, 2), "layers.0.attention.kv_cache.k_cache": torch.zeros(2)}
    save_file(weights, tmp_path / "model.safetensors")
    state = load(tmp_path / "model.safetensors").transformer.state_dict()
    for name, tensor in load(file_of(kind)).transformer.state_dict().items():
        assert torch.equal(state[name], tensor)


def test_what_the_models_offer() -> None:
    classes, captions = load(file_of("c2i")), load(file_of("t2i"))
    assert [(g.rows, g.cols) for g in classes.grids] == [(24, 24), (16, 16), (32, 32)]
    assert [(g.rows, g.cols) for g in captions.grids] == [(32, 32), (16, 16), (24, 24)]
    assert (classes.defaults.guidance, classes.defaults.top_k) == (4.0, 2000)
    assert (captions.defaults.guidance, captions.defaults.top_k) == (7.5, 1000)
    assert {classes.tokenizer_kind, captions.tokenizer_kind} == {"llamagen"}
    assert classes.name == "LlamaGen c2i (2 layers of 128)"


@pytest.mark.parametrize("text", ["7", " class 7 ", "Class: 7", "class #7", "class7"])
def test_classes_are_numbers(text: str) -> None:
    assert load(file_of("c2i")).encode_prompt(text).tensors["label"] == 7


@pytest.mark.parametrize("text", ["", "10", "-1", "3.5", "golden retriever", "7 8", "²"])
def test_other_class_prompts_are_refused(text: str) -> None:
    with pytest.raises(PromptError, match="a number from 0 to 9"):
        load(file_of("c2i")).encode_prompt(text)


def test_captions_go_through_the_text_encoder() -> None:
    model = load(file_of("t2i"))
    with pytest.raises(PromptError, match=r"huggingface.co/google/flan-t5-xl.*models/text_encoders"):
        model.encode_prompt("a cat")
    features = torch.randn(5, 32)
    caption = SimpleNamespace(valid=features, notes=("prompt read as a cat",))
    model.text_encoder = SimpleNamespace(encode=lambda text: caption)
    prompt = model.encode_prompt("A  CAT")
    assert prompt.tensors["features"] is features and prompt.notes == caption.notes


def refusal(weights: dict[str, Tensor], folder: Path) -> str:
    torch.save({"model": weights}, folder / "odd.pt")
    with pytest.raises(CheckpointError) as caught:
        load(folder / "odd.pt")
    assert "odd.pt" in str(caught.value)
    return str(caught.value)


@KINDS
def test_files_that_do_not_fit(kind: str, tmp_path: Path) -> None:
    weights = weights_of(kind)
    lost = {name: tensor for name, tensor in weights.items() if name != "layers.1.attention.wo.weight"}
    assert "layers.1.attention.wo.weight" in refusal(lost, tmp_path)
    renamed = {name.replace("output.weight", "head.weight"): tensor for name, tensor in weights.items()}
    assert "output.weight" in (message := refusal(renamed, tmp_path)) and "head.weight" in message
    shape = weights | {"layers.0.feed_forward.w3.weight": torch.zeros(256, 128)}
    assert "layers.0.feed_forward.w3.weight" in refusal(shape, tmp_path)
    for name in ("tok_embeddings.weight", "layers.0.attention.wqkv.weight"):
        flat = weights | {name: weights[name].flatten()}
        assert name in refusal(flat, tmp_path)


def test_unconditional_features_must_come_from_the_file(tmp_path: Path) -> None:
    weights = weights_of("t2i")
    short = weights | {"cls_embedding.uncond_embedding": torch.zeros(77, 32)}
    assert "77 positions, captions have 120" in refusal(short, tmp_path)
    del weights["cls_embedding.uncond_embedding"]
    assert "uncond_embedding is missing" in refusal(weights, tmp_path)


def test_files_of_other_kinds(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no AR image model .* looks like an image tokenizer"):
        load(GOLDEN / "llamagen_vq_tiny.pt")
    assert "no AR image model" in refusal({"unet.weight": torch.zeros(2)}, tmp_path)


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("c2i_B_256.pt", 16),
        ("c2i_3B_384.pt", 24),
        ("t2i_XL_stage2_512_bf16.safetensors", 32),
        ("mine.pt", None),
        ("c2i_2567.pt", None),
        ("from_256_to_512.pt", None),
    ],
)
def test_the_files_name_hints_at_the_grid(name: str, side: int | None) -> None:
    hint = grid_hint(Named({}, name), 1)
    assert (hint and hint.side) == side


@pytest.mark.parametrize(
    ("prefix", "rows", "side"), [(1, 257, 16), (120, 696, 24), (1, 256, None), (120, 9, None)]
)
def test_a_rotary_table_tells_the_grid(prefix: int, rows: int, side: int | None) -> None:
    hint = grid_hint(Named({"freqs_cis": SimpleNamespace(shape=(rows, 32, 2))}, "mine.pt"), prefix)
    assert (hint and hint.side) == side


class Named:
    """As much of a checkpoint as tells the grid."""

    def __init__(self, tensors: dict[str, SimpleNamespace], name: str) -> None:
        self.tensors, self.path = tensors, Path(name)

    def __contains__(self, name: str) -> bool:
        return name in self.tensors


def test_a_grid_that_the_file_was_not_trained_on_is_warned_of(tmp_path: Path) -> None:
    shutil.copy(file_of("c2i"), tmp_path / "c2i_B_256.pt")
    model, unknown = load(tmp_path / "c2i_B_256.pt"), load(file_of("c2i"))
    assert isinstance(model, GuessedGrid) and isinstance(unknown, GuessedGrid)
    default, trained = model.grids[0], TokenGrid(16, 16)
    assert ": set rows and columns to 16" in model.grid_warning(default, chosen=False)
    assert ": set rows and columns to 16" in model.grid_warning(default, chosen=True)
    assert model.grid_warning(trained, chosen=True) == ""
    assert "24 x 24 tokens are a guess" in unknown.grid_warning(default, chosen=False)
    assert unknown.grid_warning(default, chosen=True) == ""
