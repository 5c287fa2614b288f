"""From a file to an image tokenizer, whichever of the known kinds it holds."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import torch

from . import vq_files
from .checkpoint import Checkpoint, open_checkpoint
from .errors import CheckpointError
from .families import FAMILIES, builtin_vq
from .image_tokenizer import ImageTokenizer, Operations

BUILTIN_TOKENIZER = Path(__file__).parent / "builtin" / "builtin_vq.safetensors"
# Each has recognises(checkpoint) and load(checkpoint, …).
KINDS: tuple[ModuleType, ...] = (builtin_vq, vq_files)


def load_image_tokenizer(
    path: str | os.PathLike[str],
    *,
    device: torch.device | str,
    dtype: torch.dtype = torch.float32,
    operations: Operations = torch.nn,
) -> ImageTokenizer:
    """Load the image tokenizer (VQ) in `path`. What it is goes by the names and shapes of its tensors."""
    return load_opened_tokenizer(open_checkpoint(path), device=device, dtype=dtype, operations=operations)


def load_opened_tokenizer(
    checkpoint: Checkpoint,
    *,
    device: torch.device | str,
    dtype: torch.dtype = torch.float32,
    operations: Operations = torch.nn,
) -> ImageTokenizer:
    """As `load_image_tokenizer`; on the meta device only headers and the codebook are read."""
    packed = checkpoint.packed_tokenizer()
    within = packed is not None or any(family.recognises(checkpoint) for family in FAMILIES)
    checkpoint = packed or checkpoint
    for kind in KINDS:
        if kind.recognises(checkpoint):
            vq = kind.load(checkpoint, device=device, dtype=dtype, operations=operations)
            return replace(vq, within_model=within)
    names = ", ".join(list(checkpoint.tensors)[:3])
    raise CheckpointError(
        f"{checkpoint.description} is not an image tokenizer known here (those of LlamaGen, Janus, "
        "Chameleon, Emu3 and Lumina-mGPT 2.0, and the built-in one): its tensors begin with "
        f"{names}. Choose the VQ file that belongs to the model"
    )
