"""Janus in both layouts: what the official class and transformers' class compute (small random weights)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from jacobi_ar.decoding import SamplingSettings, autoregressive, decode, run_to_end
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.checkpoint import Checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError, PromptError
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import load_image_model
from safetensors.torch import load_file, save_file
from torch import Tensor

from .reference import logits_in_windows
from .tiny_janus import PLAIN_WORDS, SPECIAL, WORDS, logits_of, make_reference, save
from .tiny_tokenizer import write_tokenizer
from .token_prompt_check import assert_same_logits

if TYPE_CHECKING:
    from transformers import JanusForConditionalGeneration

GOLDEN = Path(__file__).parent / "golden" / "janus_original_tiny"
GRID = TokenGrid(4, 4)
COLD = SamplingSettings(temperature=0.0)


@pytest.fixture(scope="module")
def reference() -> JanusForConditionalGeneration:
    return make_reference()


def load(path: Path, dtype: torch.dtype = torch.float32) -> ImageModel:
    return load_image_model(path, device="cpu", dtype=dtype)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The golden model with a tokenizer."""
    for file in ("config.json", "pytorch_model.bin"):
        shutil.copy(GOLDEN / file, tmp_path)
    write_tokenizer(tmp_path / "tokenizer.json", WORDS, SPECIAL, 512)
    return tmp_path


def test_prompt_logits_and_tokens_are_those_of_the_official_class(folder: Path) -> None:
    model, expected = load(folder), load_file(GOLDEN / "expected.safetensors")
    prompts, tokens = [model.encode_prompt(" red cat ")], expected["teacher_tokens"]
    ids = model.transformer.prompt_ids(prompts, GRID, guided=True)
    assert ids == [expected["prompt_ids"].tolist(), expected["uncond_prompt_ids"].tolist()]
    for guidance, name in ((1.0, "cond_logits"), (0.0, "uncond_logits")):
        got = logits_in_windows(model, GRID, prompts, tokens, guidance, [15])
        torch.testing.assert_close(got, expected[name], rtol=1e-5, atol=1e-5)
    greedy = run_to_end(decode(model.target(GRID, 5.0), prompts, autoregressive(), COLD, [0])).tokens
    assert torch.equal(greedy.view(1, 16), expected["greedy_ids_cfg5"])


@pytest.mark.parametrize(
    "layout", ["hugging face", "original, one part", "original, two parts", "original, safetensors"]
)
def test_logits_are_those_of_transformers(
    layout: str, reference: JanusForConditionalGeneration, tmp_path: Path
) -> None:
    model = load(save(reference, tmp_path, layout))
    assert [(g.rows, g.cols, g.row_end) for g in model.grids] == [(4, 4, ())]
    texts = ["a cat on a red mat", "red cat", ""]
    assert_same_logits(model, GRID, texts, logits_of(reference), 5.0)


def test_greedy_tokens_are_those_of_generate(
    reference: JanusForConditionalGeneration, tmp_path: Path
) -> None:
    model = load(save(reference, tmp_path, "hugging face"))
    prompt = model.encode_prompt("red cat")
    (ids,) = model.transformer.prompt_ids([prompt], GRID, guided=False)
    settings = reference.generation_config
    settings.guidance_scale, settings.pad_token_id, settings.bos_token_id = 5, 2, 100
    settings.generation_kwargs, settings.max_length = {"boi_token_id": 101}, 64
    rows = torch.tensor([ids])
    expected = reference.generate(
        input_ids=rows, attention_mask=torch.ones_like(rows), generation_mode="image", do_sample=False
    )
    got = run_to_end(decode(model.target(GRID, 5.0), [prompt], autoregressive(), COLD, [0])).tokens
    assert torch.equal(got.view(1, 16), expected)


def test_a_prompt_is_the_same_beside_a_longer_one(
    reference: JanusForConditionalGeneration, tmp_path: Path
) -> None:
    """In float64, where the width of the padding is beyond rounding."""
    model = load(save(reference, tmp_path, "hugging face"), torch.float64)
    tokens = torch.randint(128, (1, 16), generator=torch.Generator().manual_seed(1)).expand(2, -1)
    prompts = [model.encode_prompt(text) for text in ("red cat", "a cat on " + "a red mat " * 12)]
    alone = logits_in_windows(model, GRID, prompts[:1], tokens[:1], 5.0, [15])
    beside = logits_in_windows(model, GRID, prompts, tokens, 5.0, [15])
    torch.testing.assert_close(beside[:1], alone)
    bytes_of_run = model.cache_bytes(prompts, GRID, 5.0, 16)
    target = model.target(GRID, 5.0)
    target.prefill(prompts, 16)
    assert bytes_of_run == target._cache.columns.nbytes
    target.forward(tokens[:, :1], *[torch.zeros(2, 1, dtype=torch.long)] * 2, torch.ones(2, 1, 1).bool())
    target.retain([1])
    slots = torch.arange(1, 4)[None]
    got = target.forward(tokens[:1, 1:4], slots, slots, torch.arange(4) <= slots[..., None])
    longer = logits_in_windows(model, GRID, prompts[1:], tokens[:1], 5.0, [15])
    torch.testing.assert_close(got, longer[:, 2:5])


def test_what_the_model_offers(folder: Path) -> None:
    model = load(folder)
    assert (model.name, model.family, model.tokenizer_kind) == (
        "Janus-Pro (2 layers of 64)",
        "Janus",
        "janus",
    )
    assert [(g.rows, g.cols) for g in model.grids] == [(24, 24)]
    assert (model.defaults.guidance, model.defaults.temperature, model.defaults.top_k) == (5.0, 1.0, 0)
    assert model.encode_prompt("red cat").notes == ()
    assert "left to the model" in model.encode_prompt(" ").notes[0]


def test_the_plain_roles_where_the_others_are_no_tokens(folder: Path) -> None:
    write_tokenizer(folder / "tokenizer.json", PLAIN_WORDS, SPECIAL, 512)
    model = load(folder)
    prompt = model.encode_prompt("red cat")
    assert model.transformer.prompt_ids([prompt], GRID, False) == [[100, 12, 6, 7, 13, 101]]
    assert model.name.startswith("Janus (")


def test_only_what_is_needed_is_read(
    reference: JanusForConditionalGeneration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, names = save(reference, tmp_path, "hugging face"), []
    read = Checkpoint.read
    monkeypatch.setattr(
        Checkpoint, "read", lambda self, name, rows: names.append(name) or read(self, name, rows)
    )
    load(folder)
    assert len(names) == len(set(names)) == 2 + 1 + 4 + 4 + 1 + 2 * 9 - 1
    assert not [name for name in names if "vision_model" in name or "vqmodel" in name or "lm_head" in name]


@pytest.mark.parametrize("layout", ["hugging face", "original, safetensors"])
def test_files_that_do_not_fit(layout: str, reference: JanusForConditionalGeneration, tmp_path: Path) -> None:
    weights = load_file(save(reference, tmp_path, layout) / "model.safetensors")

    def refusal(changed: dict[str, Tensor]) -> str:
        save_file(changed, tmp_path / "model.safetensors")
        with pytest.raises(CheckpointError) as caught:
            load(tmp_path)
        return str(caught.value)

    for part in ("layers.1.self_attn.k_proj.weight", "vision_head.bias", "norm.weight"):
        lost = {name: tensor for name, tensor in weights.items() if not name.endswith(f"model.{part}")}
        if len(lost) == len(weights):
            lost = {name: tensor for name, tensor in weights.items() if not name.endswith(part)}
        assert "missing" in (message := refusal(lost)) and part in message
    assert "not known: extra.weight" in refusal(weights | {"extra.weight": torch.zeros(1)})
    table = next(name for name in weights if name.endswith("embed_tokens.weight"))
    assert "has 512 tokens, the model 400" in refusal(weights | {table: weights[table][:400].clone()})


def test_a_tokenizer_that_is_missing_or_another(folder: Path) -> None:
    tokenizer = folder / "tokenizer.json"
    write_tokenizer(tokenizer, WORDS, {"<s>": 100}, 512)
    with pytest.raises(CheckpointError, match=r"does not belong to this model: it has no token <｜begin"):
        load(folder)
    tokenizer.write_text("{}")
    with pytest.raises(CheckpointError, match="damaged or no tokenizer file"):
        load(folder)
    tokenizer.unlink()
    with pytest.raises(CheckpointError, match=r"no tokenizer.json in .*huggingface.co/deepseek-ai/Janus-Pro"):
        load(folder)
    (folder / "tokenizer").mkdir()
    write_tokenizer(folder / "tokenizer" / "tokenizer.json", WORDS, SPECIAL, 512)
    assert load(folder).family == "Janus"


def test_prompts_without_end_are_refused(folder: Path) -> None:
    model = load(folder)
    prompt = model.encode_prompt("red " * 5000)
    with pytest.raises(PromptError, match="has 5004 tokens"):
        model.target(GRID, 5.0).prefill([prompt], 16)
