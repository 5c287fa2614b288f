"""A small random Janus, as transformers' class and as checkpoints in each layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file
from torch import Tensor

from .reference import Logits, additive, randomised
from .tiny_tokenizer import write_tokenizer
from .transformers_classes import from_transformers

if TYPE_CHECKING:
    from transformers import JanusForConditionalGeneration

WORDS = {"<|User|>:": 5, "red": 6, "cat": 7, "<|Assistant|>:": 9, "<|User|>": 10, "<|Assistant|>": 11}
WORDS |= {"User:": 12, "Assistant:": 13, "a": 14, "on": 15, "mat": 16}
SPECIAL = {"<｜begin▁of▁sentence｜>": 100, "<｜▁pad▁｜>": 2, "<begin_of_image>": 101}
PLAIN_WORDS = {word: number for word, number in WORDS.items() if "<|" not in word}


def make_reference() -> JanusForConditionalGeneration:
    """transformers' class, tiny and random, 4 x 4 tokens, 3 heads of 16."""
    model, configuration, vision_part, vq_part, text_part = from_transformers(
        "JanusForConditionalGeneration",
        "JanusConfig",
        "JanusVisionConfig",
        "JanusVQVAEConfig",
        "LlamaConfig",
    )
    text = text_part(
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
    vision = vision_part(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=64,
        patch_size=16,
        projection_dim=48,
        num_image_tokens=16,
    )
    vq = vq_part(
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
    config = configuration(text_config=text, vision_config=vision, vq_config=vq, image_token_id=3)
    return randomised(model(config))


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
