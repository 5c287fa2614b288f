"""From a path to a model: the file says by its content which family it is of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from .checkpoint import Checkpoint, open_checkpoint
from .errors import CheckpointError
from .families import FAMILIES, Family
from .image_model import ImageModel

BUILTIN_MODEL = Path(__file__).parent / "builtin" / "builtin_ar.safetensors"


def load_image_model(
    path: str | os.PathLike[str],
    *,
    device: torch.device | str,
    dtype: torch.dtype,
    operations: Any = torch.nn,
    text_encoder: str | os.PathLike[str] | None = None,
) -> ImageModel:
    """Load an AR image model: a weight file, or a folder with weights.

    `device` is where the weights lie, `dtype` what they and all activations are, `operations` the namespace
    that the layers come from (torch.nn, or the host's comfy.ops), `text_encoder` the file or folder of the
    text encoder, for families whose checkpoint does not hold their own.
    """
    return load_opened(
        open_checkpoint(path), device=device, dtype=dtype, operations=operations, text_encoder=text_encoder
    )


def family_of(checkpoint: Checkpoint) -> Family | None:
    """The family that the file is of, None where it holds something else."""
    return next((family for family in FAMILIES if family.recognises(checkpoint)), None)


def load_opened(
    checkpoint: Checkpoint,
    *,
    device: torch.device | str,
    dtype: torch.dtype,
    operations: Any = torch.nn,
    text_encoder: str | os.PathLike[str] | None = None,
) -> ImageModel:
    """As `load_image_model`. On the meta device only headers are read: all is checked, and no weight
    loaded."""
    family = family_of(checkpoint)
    if family is not None:
        return family.load(
            checkpoint,
            device=torch.device(device),
            dtype=dtype,
            operations=operations,
            text_encoder=text_encoder,
        )
    names = list(checkpoint.tensors)
    found = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    hint = ""
    if "quantize.embedding.weight" in checkpoint or "codebook" in checkpoint:
        hint = " This looks like an image tokenizer (VQ): load it as the tokenizer, beside a model."
    raise CheckpointError(
        f"{checkpoint.description} is no AR image model that this package knows (LlamaGen, Janus, "
        f"Lumina-mGPT, Anole, Emu3, or the built-in model); it holds {found}.{hint}"
    )
