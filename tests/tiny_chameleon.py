"""Small random models of the Chameleon family, as transformers' class and as checkpoints in each layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file
from torch import Tensor

from .reference import randomised
from .tiny_tokenizer import write_tokenizer
from .transformers_classes import from_transformers

if TYPE_CHECKING:
    from transformers import ChameleonForConditionalGeneration

CODES, FIRST, TOKENS = 64, 4, 256  # codebook, id of code 0, rows of the table
HEADS, KV_HEADS, HEAD_DIM = 6, 2, 8
WORDS = ["Generate", "an", "image", "of", "64x64", "according", "to", "the", "following", "prompt:"]
WORDS += ["a", "red", "cat", "96x64", "64x96"]
WORD_IDS = {word: 200 + number for number, word in enumerate(WORDS)}
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<eoss>": 68, "<racm3:break>": 69}
SPECIAL |= {"<reserved08706>": 70, "<reserved08799>": 71}
SPECIAL |= {f"<reserved{8800 + n:05d}>": 72 + n for n in range(40)}
IMAGE_NAMES = ["IMGIMG" + "".join("ABCDEFGHIJ"[int(d)] for d in str(code)) + "Z" for code in range(CODES)]
SPECIAL |= {name: FIRST + code for code, name in enumerate(IMAGE_NAMES)}
ROW_END = 71


def make_reference(swin: bool) -> ChameleonForConditionalGeneration:
    vq = {
        "embed_dim": 8,
        "num_embeddings": CODES,
        "latent_channels": 8,
        "resolution": 32,
        "base_channels": 32,
        "channel_multiplier": [1, 1],
        "num_res_blocks": 1,
    }
    configuration, model = from_transformers("ChameleonConfig", "ChameleonForConditionalGeneration")
    config = configuration(
        vocab_size=TOKENS,
        hidden_size=HEADS * HEAD_DIM,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        rms_norm_eps=1e-4,
        rope_theta=5000.0,
        swin_norm=swin,
        vq_config=vq,
        vocabulary_map={**{name: i for name, i in SPECIAL.items()}, "<image>": 199},
    )
    return randomised(model(config))


def weights_of(reference: ChameleonForConditionalGeneration, groups: tuple[int, int]) -> dict[str, Tensor]:
    """The reference's weights with norms of so many groups of heads, which the reference then has too."""
    draw = torch.Generator().manual_seed(3)
    norms = {}
    for i, layer in enumerate(reference.model.layers):
        for letter, rows in zip("qk", groups, strict=True):
            module = getattr(layer.self_attn, f"{letter}_norm")
            for leaf in ("weight", "bias"):
                small = torch.randn(rows, HEAD_DIM, generator=draw) + (leaf == "weight")
                whole = getattr(module, leaf)
                whole.copy_(small.repeat_interleave(len(whole) // rows, 0))
                norms[f"model.layers.{i}.self_attn.{letter}_norm.{leaf}"] = small
    weights = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    return {name: tensor for name, tensor in weights.items() if ".vqmodel." not in name} | norms


def by_neighbours(rows: Tensor) -> Tensor:
    """Rows of heads in the order of Meta's files: channels that turn together lie side by side."""
    return torch.stack(rows.unflatten(0, (-1, 2, HEAD_DIM // 2)).unbind(1), dim=2).reshape(rows.shape)


def meta_names(weights: dict[str, Tensor], fused: bool) -> dict[str, Tensor]:
    """The same model as Meta's own code keeps it."""
    named = {
        "tok_embeddings.weight": weights["model.embed_tokens.weight"],
        "norm.weight": weights["model.norm.weight"],
        "output.weight": weights["lm_head.weight"],
        "rope.freqs": torch.zeros(4),
    }
    for i in range(2):
        theirs = {
            name.removeprefix(f"model.layers.{i}."): tensor
            for name, tensor in weights.items()
            if f"layers.{i}." in name
        }
        q, k, v, o = (theirs[f"self_attn.{letter}_proj.weight"] for letter in "qkvo")
        q, k = by_neighbours(q), by_neighbours(k)
        gate, up, down = (theirs[f"mlp.{part}_proj.weight"] for part in ("gate", "up", "down"))
        ours = {"wqkv": torch.cat([q, k, v])} if fused else {"wq": q, "wk": k, "wv": v}
        layer = {f"attention.{name}.weight": tensor for name, tensor in (ours | {"wo": o}).items()}
        ours = {"w13": torch.cat([gate, up])} if fused else {"w1": gate, "w3": up}
        layer |= {f"feed_forward.{name}.weight": tensor for name, tensor in (ours | {"w2": down}).items()}
        layer["attention_norm.weight"] = theirs["input_layernorm.weight"]
        layer["ffn_norm.weight"] = theirs["post_attention_layernorm.weight"]
        for letter in "qk":
            for leaf in ("weight", "bias"):
                (norm,) = theirs[f"self_attn.{letter}_norm.{leaf}"]
                layer[f"attention.{letter}_normalization.{leaf}"] = by_neighbours(norm)
        named |= {f"layers.{i}.{name}": tensor for name, tensor in layer.items()}
    return named


def save(
    reference: ChameleonForConditionalGeneration,
    folder: Path,
    layout: str = "lumina",
    groups: tuple[int, int] = (1, 1),
) -> Path:
    """The reference as a checkpoint folder of Lumina-mGPT, of Anole in Hugging Face's layout or Meta's."""
    weights, config = weights_of(reference, groups), json.loads(reference.config.to_json_string())
    if layout.startswith("meta"):
        models = folder / "models" / "7b"
        models.mkdir(parents=True)
        (folder / "tokenizer").mkdir()
        torch.save(meta_names(weights, fused="fused" in layout), models / "consolidated.pth")
        params = {"swin_norm": config["swin_norm"], "norm_eps": 1e-4, "rope_theta": 5000.0}
        (models / "params.json").write_text(json.dumps({"model": params} if "fused" in layout else params))
        write_tokenizer(folder / "tokenizer" / "text_tokenizer.json", WORD_IDS, SPECIAL, TOKENS)
        return models
    config.pop("vocabulary_map")
    if layout == "lumina":
        config["mask_image_logits"] = False
    else:
        weights |= {"model.vqmodel.decoder.conv_in.weight": torch.zeros(1), "model.vqmodel.x": torch.zeros(1)}
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder / "tokenizer.json", WORD_IDS, SPECIAL, TOKENS)
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / "model.safetensors")
    return folder
