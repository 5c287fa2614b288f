"""Randomly initialised models of real shape, loaded through the package's own loader from a file in the
official layout."""

from __future__ import annotations

import tempfile
from pathlib import Path

import common  # noqa: F401  (makes jacobi_ar importable)
import torch
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import load_image_model
from safetensors.torch import save_file


def random_llamagen_b(dtype: torch.dtype = torch.float32) -> ImageModel:
    """LlamaGen c2i, size B: 111 M parameters (dim 768, 12 layers, 12 heads), normal with deviation 0.02."""
    return random_llamagen(dim=768, layers=12, ffn=2048, dtype=dtype)


def random_llamagen(dim: int, layers: int, ffn: int, dtype: torch.dtype) -> ImageModel:
    """A class-to-image model of the given shape; vocabulary and classes are the official ones."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return 0.02 * torch.randn(*shape, generator=generator)

    tensors = {
        "tok_embeddings.weight": normal(16384, dim),
        "cls_embedding.embedding_table.weight": normal(1001, dim),
        "norm.weight": torch.ones(dim),
        "output.weight": normal(16384, dim),
    }
    for i in range(layers):
        tensors |= {
            f"layers.{i}.attention.wqkv.weight": normal(3 * dim, dim),
            f"layers.{i}.attention.wo.weight": normal(dim, dim),
            f"layers.{i}.feed_forward.w1.weight": normal(ffn, dim),
            f"layers.{i}.feed_forward.w3.weight": normal(ffn, dim),
            f"layers.{i}.feed_forward.w2.weight": normal(dim, ffn),
            f"layers.{i}.attention_norm.weight": torch.ones(dim),
            f"layers.{i}.ffn_norm.weight": torch.ones(dim),
        }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.safetensors"
        save_file(tensors, path)
        return load_image_model(path, device="cpu", dtype=dtype)
