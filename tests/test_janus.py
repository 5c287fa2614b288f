"""Janus in both layouts: what the official class and transformers' class compute (small random weights)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from jacobi_ar.decoding import SamplingSettings, autoregressive, decode, run_to_end
from jacobi_ar.decoding.grid import TokenGrid
from jacobi_ar.model_loaders.checkpoint import Checkpoint
from jacobi_ar.model_loaders.errors import CheckpointError
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import load_image_model
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    JanusConfig,
    JanusForConditionalGeneration,
    JanusVisionConfig,
    JanusVQVAEConfig,
    LlamaConfig,
)

from .reference import (
    Logits,
    additive,
    logits_in_windows,
    logits_out_of_order,
    randomised,
    reference_out_of_order,
)
from .tiny_tokenizer import write_tokenizer

GOLDEN = Path(__file__).parent / "golden" / "janus_original_tiny"
GRID = TokenGrid(4, 4)
COLD = SamplingSettings(temperature=0.0)
WORDS = {"<|User|>:": 5, "red": 6, "cat": 7, "<|Assistant|>:": 9, "<|User|>": 10, "<|Assistant|>": 11}
WORDS |= {"User:": 12, "Assistant:": 13, "a": 14, "on": 15, "mat": 16}
SPECIAL = {"<｜begin▁of▁sentence｜>": 100, "<｜▁pad▁｜>": 2, "<begin_of_image>": 101}
PLAIN_WORDS = {word: number for word, number in WORDS.items() if "<|" not in word}


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


@pytest.fixture(scope="module")
def reference() -> JanusForConditionalGeneration:
    """transformers' class, tiny and random, 4 x 4 tokens, 3 heads of 16."""
    text = LlamaConfig(
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=3,
        vocab_size=512,
        pad_token_id=2,
        bos_token_id=100,
        rope_theta=5000.0,
        rms_norm_eps=1e-4,
    )
    vision = JanusVisionConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=64,
        patch_size=16,
        projection_dim=48,
        num_image_tokens=16,
    )
    vq = JanusVQVAEConfig(
        embed_dim=8,
        num_embeddings=128,
        latent_channels=32,
        base_channels=32,
        channel_multiplier=[1, 1],
        num_res_blocks=1,
        projection_dim=48,
        image_token_embed_dim=48,
    )
    torch.manual_seed(0)
    config = JanusConfig(text_config=text, vision_config=vision, vq_config=vq, image_token_id=3)
    return randomised(JanusForConditionalGeneration(config))


def original_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights as the original layout names them, with what else lies in such files."""
    renamed = {
        "model.language_model.": "language_model.model.",
        "model.generation_embeddings.": "gen_embed.",
        "model.generation_aligner.fc1.": "gen_aligner.layers.0.",
        "model.generation_aligner.hidden_layers.0.": "gen_aligner.layers.2.",
        "model.generation_head.proj_out.": "gen_head.output_mlp_projector.",
        "model.generation_head.vision_head.": "gen_head.vision_head.",
        "lm_head.": "language_model.lm_head.",
        "model.aligner.fc1.": "aligner.layers.0.",
        "model.aligner.hidden_layers.0.": "aligner.layers.2.",
        "model.vqmodel.": "gen_vision_model.",
        "model.vision_model.": "vision_model.vision_tower.",
    }
    result = {}
    for name, tensor in weights.items():
        start = next(start for start in renamed if name.startswith(start))
        result[renamed[start] + name.removeprefix(start)] = tensor
    return result


def save(reference: JanusForConditionalGeneration, folder: Path, layout: str) -> Path:
    """The reference as a checkpoint folder in one of the published forms."""
    weights = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    config = json.loads(reference.config.to_json_string())
    if layout != "hugging face":
        weights = original_names(weights)
        vision = {"params": {"image_size": 64, "model_name": "siglip_large_patch16_384"}}
        config = {
            "model_type": "multi_modality",
            "language_config": config["text_config"],
            "vision_config": vision,
        }
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder / "tokenizer.json", WORDS, SPECIAL, 512)
    if layout == "original, two parts":
        names = list(weights)
        parts = [names[: len(names) // 2], names[len(names) // 2 :]]
        index = {}
        for number, part in enumerate(parts, 1):
            file = f"pytorch_model-0000{number}-of-00002.bin"
            torch.save({name: weights[name] for name in part}, folder / file)
            index |= dict.fromkeys(part, file)
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": index}))
    elif layout == "original, one part":
        torch.save(weights, folder / "pytorch_model.bin")
    else:
        save_file(weights, folder / "model.safetensors")
    return folder


def logits_of(reference: JanusForConditionalGeneration) -> Logits:
    inner = reference.model

    def logits(prompt: list[int], codes: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        words = reference.get_input_embeddings()(torch.tensor([prompt]))
        pictures = reference.prepare_embeddings_for_image_generation(codes)[None]
        hidden = inner.language_model(
            inputs_embeds=torch.cat([words, pictures], dim=1),
            position_ids=positions[None],
            attention_mask=additive(mask),
            use_cache=False,
        ).last_hidden_state
        return inner.generation_head(hidden)[0]

    return logits


def in_order(logits: Logits, prompt: list[int], codes: Tensor) -> Tensor:
    """Logits of every cell given those before it, [16, V]."""
    count = len(prompt) + len(codes) - 1
    mask = torch.ones(count, count, dtype=torch.bool).tril()
    return logits(prompt, codes[:-1], torch.arange(count), mask)[len(prompt) - 1 :]


LAYOUTS = pytest.mark.parametrize(
    "layout", ["hugging face", "original, one part", "original, two parts", "original, safetensors"]
)
TEXTS = ["red cat", "a cat on a red mat", ""]


@LAYOUTS
def test_logits_are_those_of_transformers(
    layout: str, reference: JanusForConditionalGeneration, tmp_path: Path
) -> None:
    model, logits = load(save(reference, tmp_path, layout)), logits_of(reference)
    assert [(g.rows, g.cols, g.row_end) for g in model.grids] == [(4, 4, ())]
    tokens = torch.randint(128, (3, 16), generator=torch.Generator().manual_seed(1))
    prompts = [model.encode_prompt(text) for text in TEXTS]
    rows = model.transformer.prompt_ids(prompts, GRID, guided=True)
    assert len({len(row) for row in rows}) == 3 and [len(row) for row in rows[:3]] == [
        len(r) for r in rows[3:]
    ]
    whole = [in_order(logits, row, codes) for row, codes in zip(rows, tokens.repeat(2, 1), strict=True)]
    conditional, unconditional = torch.stack(whole[:3]), torch.stack(whole[3:])
    for guidance in (1.0, 5.0):
        expected = unconditional + guidance * (conditional - unconditional)
        for windows in ([15], [1] * 15, [4, 1, 7, 3]):
            got = logits_in_windows(model, GRID, prompts, tokens, guidance, windows)
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    got = logits_out_of_order(model, GRID, prompts[1], tokens[1], 5.0)
    c, u = (reference_out_of_order(logits, row, tokens[1]) for row in (rows[1], rows[4]))
    torch.testing.assert_close(got, u + 5.0 * (c - u), rtol=1e-4, atol=1e-4)


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
