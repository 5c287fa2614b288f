"""Randomly initialised models of real shape, loaded through the package's own loader from a file in the
official layout."""

from __future__ import annotations

import tempfile
from pathlib import Path

import common  # noqa: F401  (makes jacobi_ar importable)
import torch
from jacobi_ar.model_loaders.image_model import ImageModel
from jacobi_ar.model_loaders.load import load_image_model
from real_shapes import llamagen_c2i, write_file


def random_llamagen_b(dtype: torch.dtype = torch.float32) -> ImageModel:
    """LlamaGen c2i, size B: 111 M parameters (dim 768, 12 layers, 12 heads), normal with deviation 0.02."""
    return random_llamagen(dim=768, layers=12, ffn=2048, dtype=dtype)


def random_llamagen(dim: int, layers: int, ffn: int, dtype: torch.dtype) -> ImageModel:
    """A class-to-image model of the given shape; vocabulary and classes are the official ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.safetensors"
        write_file(llamagen_c2i(dim, layers, ffn), path, "F32", random=True)
        return load_image_model(path, device="cpu", dtype=dtype)
