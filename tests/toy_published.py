"""Tiny random models in the published layout, under the names that the families' templates hold.

Models with thousands of tokens to a picture get one law for all image tokens: then every guess is right, and
a picture takes hundreds of passes instead of thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from .toy_families import CODES, FIRST, GOLDEN, LARGE, anole, emu3, janus, lumina, lumina2

CLASSES = 1001  # of ImageNet, and the one of no class


def picture_network(file: str, key: str = "", codes: int = CODES) -> dict[str, Tensor]:
    """A tiny image tokenizer with as many codes as a toy has."""
    weights = torch.load(GOLDEN / file, weights_only=True)
    weights = weights[key] if key else weights
    table = weights["quantize.embedding.weight"]
    return weights | {"quantize.embedding.weight": torch.randn(codes, table.shape[1])}


def include(folder: Path, network: dict[str, Tensor], prefix: str) -> None:
    """Puts the image tokenizer among the model's own weights."""
    weights = load_file(folder / "model.safetensors")
    save_file(
        weights | {prefix + name: tensor for name, tensor in network.items()}, folder / "model.safetensors"
    )


def flatten(folder: Path, first: int = FIRST, codes: int = CODES) -> None:
    """All image tokens become equally likely."""
    weights = load_file(folder / "model.safetensors")
    weights["lm_head.weight"][first : first + codes] = 0
    save_file(weights, folder / "model.safetensors")


def janus_pro_files(models: Path) -> None:
    folder = janus(models / "ar_image" / "Janus-Pro-1B")
    include(folder, picture_network("llamagen_vq_tiny.pt", "model"), "gen_vision_model.")


def anole_files(models: Path) -> None:
    folder = anole(models / "ar_image" / "Anole-7b-v0.1-hf")
    include(folder, picture_network("chameleon_vqgan_tiny.ckpt", "state_dict"), "model.vqmodel.")


def lumina_files(models: Path) -> None:
    flatten(lumina(models / "ar_image" / "Lumina-mGPT-7B-768"))
    network = picture_network("chameleon_vqgan_tiny.ckpt", "state_dict")
    torch.save({"state_dict": network}, models / "ar_image" / "vqgan.ckpt")


def lumina2_files(models: Path) -> None:
    codes, first, _ = LARGE
    flatten(lumina2(models / "ar_image" / "Lumina-mGPT-2.0"), first, codes)
    network = picture_network("movqgan_decoder_tiny.ckpt", codes=codes)
    torch.save(network, models / "ar_image" / "movqgan_270M.ckpt")


def emu3_files(models: Path) -> None:
    from .test_image_tokenizers import emu3_file, emu3_network

    flatten(emu3(models / "ar_image" / "Emu3-Gen"))
    folder = models / "ar_image" / "Emu3-VisionTokenizer"
    emu3_file(folder, emu3_network(CODES), "original")
    (folder / "config.json").write_text("{}", encoding="utf-8")


def llamagen_t2i_files(models: Path) -> None:
    from .test_t5 import write_encoder

    copy(GOLDEN / "llamagen_t2i_tiny.pt", models / "ar_image" / "t2i_XL_stage2_512.pt")
    copy(GOLDEN / "llamagen_vq_tiny.pt", models / "ar_image" / "vq_ds16_t2i.pt")
    write_encoder(models / "text_encoders" / "flan-t5-xl")


def llamagen_c2i_files(models: Path) -> None:
    weights = torch.load(GOLDEN / "llamagen_c2i_tiny.pt", weights_only=True)
    table = weights["model"]["cls_embedding.embedding_table.weight"]
    weights["model"]["cls_embedding.embedding_table.weight"] = torch.randn(CLASSES, table.shape[1])
    torch.save(weights, models / "ar_image" / "c2i_L_384.pt")
    copy(GOLDEN / "llamagen_vq_tiny.pt", models / "ar_image" / "vq_ds16_c2i.pt")


def copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


# Template -> what puts its files below ComfyUI's `models`, whose folders exist.
PUBLISHED: dict[str, Callable[[Path], None]] = {
    "llamagen_t2i": llamagen_t2i_files,
    "llamagen_c2i": llamagen_c2i_files,
    "janus_pro": janus_pro_files,
    "lumina_mgpt": lumina_files,
    "lumina_mgpt_2": lumina2_files,
    "anole": anole_files,
    "emu3": emu3_files,
}
